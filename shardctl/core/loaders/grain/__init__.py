"""Grain's loaders: its IndexSampler, MapDataset with shuffle and windows, and worker processes."""
