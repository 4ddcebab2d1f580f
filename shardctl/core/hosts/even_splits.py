"""Even splits: the examples split among hosts as `tfds.even_splits` does."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.core.hosts.host import Host
from shardctl.core.instructions.split_range import SplitRange


def even_range(start: int, stop: int, index: int, count: int, drop_remainder: bool) -> range:
    """Return the part of [start, stop) that falls to host `index` of `count`.

    The first `remainder` hosts take one example more; with `drop_remainder` nobody does (TFDS
    core/subsplits_utils.py, _EvenSplit).

    >>> [len(even_range(0, 11, i, 3, False)) for i in range(3)]
    [4, 4, 3]
    >>> [len(even_range(0, 11, i, 3, True)) for i in range(3)]
    [3, 3, 3]
    """
    each, remainder = divmod(stop - start, count)
    first, last = start + each * index, start + each * (index + 1)
    if not drop_remainder:
        first, last = first + min(index, remainder), last + min(index + 1, remainder)
    return range(first, last)


def even_split(
    ranges: Sequence[SplitRange], index: int, count: int, *, drop_remainder: bool = False
) -> tuple[SplitRange, ...]:
    """Return what host `index` of `count` reads; each part of a sum is split by itself."""
    Host(index=index, count=count)  # refuses what is no host
    parts = []
    for piece in ranges:
        part = even_range(piece.start, piece.stop, index, count, drop_remainder)
        parts.append(SplitRange(split=piece.split, start=part.start, stop=part.stop))
    return tuple(parts)
