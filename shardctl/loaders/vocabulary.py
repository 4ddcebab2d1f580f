"""The calls that a chain of a loader is written with, as those of tf.data (`stages/calls.py`)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from shardctl.loaders.loader import READERS

if TYPE_CHECKING:
    from shardctl.stages.calls import Calls


@cache
def calls_of(loader: str) -> Calls:
    """Return the calls of the stages of a loader, by their names.

    They are the parts that its module defines (`Loader.stages`), and the sources whose examples are
    counted; a loader without such a module has none.

    >>> "sample_from_datasets" in calls_of("tfds")
    True
    """
    # What no stages are written with loads nothing of them.
    from shardctl.stages.calls import CALLS, Call
    from shardctl.stages.part import Part
    from shardctl.stages.stages import Counter, Generator, Range, Read

    reader = READERS[loader]
    if reader.on_tf_data:
        return CALLS
    parts = vars(import_module(reader.stages)).values() if reader.stages else ()
    own = (
        part
        for part in parts
        # Those that it defines, not those that it imports.
        if isinstance(part, type) and issubclass(part, Part) and part.__module__ == reader.stages
    )
    named = [part for part in own if "name" in vars(part)]
    made = map(Call.of_part, (Read, Range, Generator, Counter, *named))
    return {call.name: call for call in made}
