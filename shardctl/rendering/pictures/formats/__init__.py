"""Pictures as files: SVG of our own."""
