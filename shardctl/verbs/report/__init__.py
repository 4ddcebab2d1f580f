"""Everything about one pipeline, or about two of them, in one answer."""
