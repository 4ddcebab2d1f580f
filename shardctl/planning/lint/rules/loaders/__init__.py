"""The rules about other loaders than TFDS's: a file a library."""
