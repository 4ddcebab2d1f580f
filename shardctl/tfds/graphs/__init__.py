"""The graph of a `tf.data.Dataset`: read, edited, and run again over other examples."""
