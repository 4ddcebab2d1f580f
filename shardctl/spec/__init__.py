"""From a spec as `train[:10%]` to ranges of examples, file instructions, and each host's part."""
