"""Metadata of TFDS for record files that have none."""
