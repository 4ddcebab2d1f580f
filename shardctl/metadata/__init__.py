"""What others wrote, made a dataset: TFDS metadata, layout files, the catalog, names looked up."""
