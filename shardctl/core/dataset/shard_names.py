"""The names of the files of many shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardctl.core.arrays import Int64s, distinct, run_of
from shardctl.core.dataset.dataset import Split, filenames_at


def shard_names(splits: Sequence[Split], split: Int64s, shard: Int64s) -> list[str]:
    r"""Return the base names of the files of shards, given by their indices (int64[n] each).

    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-\0", num_shards=2)
    >>> train = Split(name="train", shard_lengths=(2, 1), files=(files,))
    >>> shard_names([train], np.array([0, 0]), np.array([1, 0]))
    ['d-00001', 'd-00000']
    """
    used = distinct(split)
    named = [splits[index] for index in used.tolist()]
    # Each file is named once, however many examples of it there are.
    starts = np.cumsum([0, *(each.num_shards for each in named)])
    places = starts[used.searchsorted(split)] + shard
    needed = distinct(places)
    cuts = needed.searchsorted(starts)
    names: list[str] = []
    for index, each in enumerate(named):
        own = needed[cuts[index] : cuts[index + 1]] - starts[index]
        run = run_of(own)
        if run is None:
            names += filenames_at(each, own.tolist())
        else:
            names += each.filenames_between(run.start, run.stop)
    return list(map(names.__getitem__, needed.searchsorted(places).tolist()))
