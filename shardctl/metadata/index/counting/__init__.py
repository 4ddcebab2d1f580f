"""Files counted: by whom, and which counts are known already."""
