"""Many epochs of an order at once."""
