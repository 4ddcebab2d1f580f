"""The bridge to Grain, PyTorch and Hugging Face: the real loaders, run beside the predicted order.

The libraries are imported in this room alone, at call time.
"""
