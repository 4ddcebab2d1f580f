"""Random pipelines, as values and as real tf.data: shardctl beside TensorFlow itself."""
