"""The place in an order that a training loop has reached: counted, kept in checkpoints."""
