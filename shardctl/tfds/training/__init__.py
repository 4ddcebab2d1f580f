"""The bridge for training: pipelines that resume, on TFDS's own reader."""
