"""What is left to read after an interruption?"""
