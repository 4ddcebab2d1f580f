"""What a snapshot keeps of an order."""
