"""Long lists in texts, read and written faster than the rest."""
