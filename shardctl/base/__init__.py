"""Nouns and their laws: datasets, subsplits, file instructions, orders. No I/O."""
