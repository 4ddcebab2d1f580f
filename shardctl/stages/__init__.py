"""The stages of a tf.data pipeline as values, as text and as YAML; they need no dataset."""
