"""Files that say something of the record files beside them, and the comparison with these."""
