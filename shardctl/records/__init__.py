"""Record files without TensorFlow: their framing, footers and checksums, one file or many."""
