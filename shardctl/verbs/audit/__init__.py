"""What a run saw: its log of steps beside the order that its pipeline has."""
