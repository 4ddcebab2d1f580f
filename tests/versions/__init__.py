"""Older lines of TensorFlow, each beside every Python that it is published for.

`python -m tests.versions 2.18 --python 3.12` makes an environment and runs in it the tests that run
TensorFlow; without arguments it tries every line. What pip has to be told of a line is in
tensorflow-LINE.txt, with its reasons. No environment has Orbax, Beam, other loaders or servers
that stand for buckets, which older lines cannot all have: tests that need them are skipped, and
what is printed says how many.
"""
