"""Rows that are made of columns, written at once: many times as fast as a row at a time."""
