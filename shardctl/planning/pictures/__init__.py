"""The numbers of pictures that no answer has: what lies where, in as many cells as can be seen."""
