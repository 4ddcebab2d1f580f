"""The bridge for checking: real files read through the real TensorFlow, and compared."""
