"""Verbs: a folder each, named as its command.

`answer.py` computes the answer, a frozen dataclass, and prints nothing; `view.py` and `picture.py`
show it; `command.py` is the command of the shell.
"""
