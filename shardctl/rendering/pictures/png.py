"""Pictures as PNG, drawn by matplotlib where it is installed."""
