"""Other readers than TFDS's on tf.data: in which order each yields examples; no datasets."""
