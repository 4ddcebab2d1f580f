"""The snapshot file: writer and reader."""
