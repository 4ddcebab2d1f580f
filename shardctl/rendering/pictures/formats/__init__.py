"""Pictures as files: SVG of our own, PNG through matplotlib."""
