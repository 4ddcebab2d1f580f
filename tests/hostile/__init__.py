"""Hostile inputs: damaged and malicious files, random command lines; what must not happen.

`SHARDCTL_PIPELINES=2000 python -m pytest -m fuzz tests/hostile` tries a quarter as many inputs of
each kind, those of a seed; `python -m tests.hostile 1000000` as many as wanted.
`verdict.py` says what a failure is.

What was tried with Python 3.11 and TensorFlow 2.21; of `servers` a tenth, of `rehearsals` a
hundredth of these cases of a kind:

| seed | cases | what failed, and was mended |
|---|---|---|
| 1 | 117 to 2,000 | 5 servers: odd lengths, a redirect to nowhere, single bytes, logins of plans |
| | | 6 scans: values, compression; 13 index: kept counts that are none |
| 2 | 3,000 | 1 completion, 14 chains, 2 arguments: laws that asked for too much |
| 3 | 2,000 | none |
"""
