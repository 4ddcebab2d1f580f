"""The order in which a pipeline yields the examples of a spec."""
