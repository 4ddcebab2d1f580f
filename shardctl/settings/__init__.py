"""What fixes an order besides the dataset and the spec."""
