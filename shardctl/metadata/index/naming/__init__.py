"""What names of files say: globs, kinds of files, shards and their numbers, splits."""
