"""A real tf.data pipeline and its script, told as the stages that it is."""
