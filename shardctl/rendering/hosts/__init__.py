"""What hosts read, as tables and documents."""
