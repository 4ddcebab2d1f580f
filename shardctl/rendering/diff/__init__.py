"""Differences, as text, annotations and documents."""
