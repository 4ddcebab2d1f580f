"""The rules about other loaders than TFDS's reader: a file a library."""
