"""A dataset as its metadata describes it: splits, shards, file names."""
