"""Bytes to datasets: TFDS metadata, layout files, the catalog, and how a reference is looked up."""
