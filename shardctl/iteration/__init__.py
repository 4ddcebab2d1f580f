"""Nodes and iterators of tf.data pipelines: what is read, and what is yielded."""
