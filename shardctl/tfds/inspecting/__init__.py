"""A real tf.data pipeline, read back as the stages that its script wrote."""
