"""What do the readers of a pipeline read, then and again from what was pinned?"""
