"""MosaicML Streaming's shards: a count, a table of offsets, the columns, the samples."""
