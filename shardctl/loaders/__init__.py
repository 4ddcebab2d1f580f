"""Other readers than TFDS's on tf.data: in which order each hands out examples; no datasets."""
