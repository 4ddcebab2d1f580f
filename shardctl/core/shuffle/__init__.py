"""TensorFlow's shuffles, replayed; knows nothing of datasets."""
