"""The order of an interleave, in closed form; knows nothing of datasets."""
