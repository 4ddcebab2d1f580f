"""Iterators that a script leaves early, ended before its interpreter is."""

from __future__ import annotations

import atexit
import gc
from functools import cache

from shardctl.tfds.imports import tensorflow


@cache
def end_iterators_at_exit() -> None:
    """Let the iterators of tf.data that are still there end before the interpreter does.

    What reads ahead for an iterator may be in a generator of ours, or in TFDS's reader of Parquet
    files. Once the interpreter ends, no thread gets back into Python, and TensorFlow, which waits
    for its threads where an iterator goes, would wait for ever.
    """
    atexit.register(_end_iterators)


def _end_iterators() -> None:
    kind = tensorflow().data.Iterator
    for found in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
        vars(found).pop("_iterator_resource", None)  # the last that holds on to it
