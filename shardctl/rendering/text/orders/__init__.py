"""Orders in words: examples as records, blocks, steps and strips as rows."""
