"""What settings and stages are in TFDS and tf.data: the real calls."""
