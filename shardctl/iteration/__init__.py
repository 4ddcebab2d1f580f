"""Iterations: what the iterators of tf.data hand out; knows nothing of datasets."""
