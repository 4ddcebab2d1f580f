"""The bridge to other loaders: run beside the predicted order, and their objects read.

The libraries are imported in this room alone, at call time.
"""
