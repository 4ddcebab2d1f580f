"""Files that shardctl writes and reads back, and the formats they are made of."""
