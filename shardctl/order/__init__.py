"""The order in which a pipeline hands out the examples of a spec."""
