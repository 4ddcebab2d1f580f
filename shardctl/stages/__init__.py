"""Stages: what a script does with a dataset, as values; knows nothing of datasets."""
