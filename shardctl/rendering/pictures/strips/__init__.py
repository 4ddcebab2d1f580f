"""Parts of the picture of an order: blocks in rows of slots, or of positions."""
