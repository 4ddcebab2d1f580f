"""The table, the document and the shardctl.yaml of `inspect`."""
