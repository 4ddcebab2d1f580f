"""Plans to read what is left after an interruption."""
