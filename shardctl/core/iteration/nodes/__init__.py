"""Nodes: the dataset objects of a chain, and what their iterators hand out."""
