"""What a plan to resume holds."""
