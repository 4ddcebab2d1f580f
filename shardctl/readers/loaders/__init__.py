"""The libraries of other loaders here: which versions are installed, and which were verified."""
