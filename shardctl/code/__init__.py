"""Pipelines and plans as Python code to paste."""
