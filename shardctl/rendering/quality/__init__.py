"""How well an order is shuffled, as tables and documents."""
