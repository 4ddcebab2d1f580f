"""The part of the Python API that reads files, and that shows answers as tables in a notebook."""
