"""Does an evaluation see every example, and end?"""
