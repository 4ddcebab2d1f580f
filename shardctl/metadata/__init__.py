"""Reads what others wrote as a `Dataset`: TFDS metadata, layouts, record files, the catalog."""
