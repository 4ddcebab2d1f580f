"""tf.data's dataset objects and iterators in Python, which move counts instead of examples."""
