"""TFRecord files, plain or compressed: followed header by header, contents checked where asked."""
