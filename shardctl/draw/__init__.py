"""What every table and text for people is made of."""
