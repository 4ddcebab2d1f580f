"""The rules about loaders besides TFDS's reader, a file a library."""
