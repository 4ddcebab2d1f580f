"""Hostile inputs: damaged and malicious files, random command lines; what must not happen.

`SHARDCTL_PIPELINES=2000 python -m pytest -m fuzz tests/hostile` tries a quarter as many inputs of
each kind, those of a seed; `python -m tests.hostile 1000000` as many as wanted.
`verdict.py` says what a failure is.
"""
