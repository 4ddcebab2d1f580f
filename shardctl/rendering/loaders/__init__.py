"""Answers about other loaders than TFDS's, where these have tables and documents of their own."""
