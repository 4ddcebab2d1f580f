"""The order of an interleave as arithmetic, without running it; knows nothing of datasets."""
