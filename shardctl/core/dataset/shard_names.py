"""The names of the files of many shards, as a column of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shardctl.core.arrays import Int64s, distinct, run_of
from shardctl.core.columns import HOLE, Numbers, Texts
from shardctl.core.dataset.dataset import Split, filenames_at


def shard_names(
    splits: Sequence[Split],
    split: Int64s,
    shard: Int64s,
    called: Callable[[Split, Sequence[int]], list[str]] = filenames_at,
) -> Texts:
    r"""Return the base names of the files of shards, given by their indices (int64[n] each).

    `called` names the files of some shards of a split where that is not by their base names.

    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-\0", num_shards=2)
    >>> train = Split(name="train", shard_lengths=(2, 1), files=(files,))
    >>> shard_names([train], np.array([0, 0]), np.array([1, 0])).tolist()
    ['d-00001', 'd-00000']
    """
    used = distinct(split)
    named = [splits[index] for index in used.tolist()]
    rules = [_rule(each) if called is filenames_at else None for each in named]
    numbered = [rule for rule in rules if rule is not None]
    if len(numbered) == len(named) and len({(f.count(HOLE), n) for f, n in numbered}) == 1:
        form, num_digits = numbered[0]
        numbers = Numbers(values=shard, num_digits=num_digits)
        which = None if len(named) == 1 else used.searchsorted(split)
        return Texts(
            forms=[form for form, _ in numbered], which=which, holes=(numbers,) * form.count(HOLE)
        )
    # Each file is named once, however many examples of it there are.
    starts = np.cumsum([0, *(each.num_shards for each in named)])
    places = starts[used.searchsorted(split)] + shard
    needed = distinct(places)
    cuts = needed.searchsorted(starts)
    forms: list[str] = []
    for index, each in enumerate(named):
        own = needed[cuts[index] : cuts[index + 1]] - starts[index]
        run = run_of(own) if called is filenames_at else None
        if run is None:
            forms += called(each, own.tolist())
        else:
            forms += each.filenames_between(run.start, run.stop)
    return Texts(forms=forms, which=needed.searchsorted(places))


def _rule(split: Split) -> tuple[str, int] | None:
    """Return the base name of the split's files with a HOLE for the index, and its digits."""
    if len(split.files) != 1 or split.files[0].names is not None:
        return None
    form = split.files[0].pattern.rpartition("/")[2]
    return (form, split.files[0].num_digits) if HOLE in form else None
