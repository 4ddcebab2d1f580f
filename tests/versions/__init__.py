"""The same tests beside each line of TensorFlow, in virtual environments of their own.

`python -m tests.versions` makes them one after the other; what pip has to be told of a line stands
in tensorflow-LINE.txt, with its reasons. No environment has Orbax, Beam, other loaders or servers
that stand for buckets, which older lines cannot all have: tests that need them are skipped, and
what is printed says how many.
"""
