"""A value of each host or shard side by side: the part that several pictures have in common."""
