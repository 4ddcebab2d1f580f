"""Which examples, from which files, in which order, on which host: planned from metadata alone."""

__version__ = "0.1.0"
