"""The bridge for evaluation: every example once, in padded batches, as many on every host."""
