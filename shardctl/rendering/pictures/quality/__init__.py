"""Pictures of how an order, and every way to read a dataset, is shuffled."""
