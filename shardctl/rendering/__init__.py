"""Plans as tables and documents: every function returns text, none prints."""
