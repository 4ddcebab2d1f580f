"""The ways in which people read one dataset, side by side: mixing, the end, going on."""
