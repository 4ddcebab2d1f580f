"""Which examples of which files are read: specs, ranges and file instructions."""
