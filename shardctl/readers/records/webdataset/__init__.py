"""WebDataset's tar archives: their members by 512-byte headers, and the samples they make."""
