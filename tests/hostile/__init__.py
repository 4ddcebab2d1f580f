"""Hostile inputs: damaged and malicious files, random command lines; what must not happen.

`python -m tests.hostile --seed 1 --budget 1000` tries so many inputs of each kind and prints how
many failed, each with the command that tries it again. `verdict.py` says what a failure is.
"""
