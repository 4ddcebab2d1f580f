"""Record files without metadata: found, named, counted, and kept as a layout."""
