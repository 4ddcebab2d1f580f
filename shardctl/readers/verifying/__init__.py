"""Every record of every file of a dataset, beside its metadata."""
