"""Whether an evaluation sees every example, and ends."""
