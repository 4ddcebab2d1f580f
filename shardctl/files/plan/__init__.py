"""The plan file of `shardctl resume`: writer and reader."""
