"""Help pages as text: guides on a terminal."""
