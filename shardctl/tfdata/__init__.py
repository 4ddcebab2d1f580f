"""The rules of tf.data as arithmetic: interleave, shuffle, seeds, mixtures; without datasets."""
