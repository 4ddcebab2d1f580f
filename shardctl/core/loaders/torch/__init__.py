"""PyTorch's loaders: its samplers, torchdata's loader with state, and Accelerate's deal."""
