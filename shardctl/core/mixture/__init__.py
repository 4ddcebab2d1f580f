"""Mixtures: which input each choice of `sample_from_datasets` takes; knows nothing of datasets."""
