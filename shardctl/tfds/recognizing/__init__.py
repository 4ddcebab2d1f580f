"""The graph of a real tf.data pipeline, recognised as readers, stages and mixtures."""
