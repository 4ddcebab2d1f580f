"""What do the readers of a pipeline with stages read, and what does it take to follow it?"""
