"""Many interleaves at once, each of the same number of shards: where a few examples are in each."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s


def opened_together(lengths: Int64s, *, cycle_length: int, block_length: int) -> Int64s:
    """Return round * cycle_length + slot of the first visit to each shard, int64[n, e or 1].

    lengths: int64[n, e], an interleave a column; no more slots than shards.

    >>> lengths = np.array([[3, 1], [0, 3], [2, 3], [1, 0]])
    >>> opened_together(lengths, cycle_length=2, block_length=2).T
    array([[0, 1, 3, 4],
           [0, 1, 2, 5]])
    """
    steps = (lengths // block_length + 1) * cycle_length
    if steps.min() == steps.max():  # the slots come free in turn
        turns, slots = np.divmod(np.arange(len(lengths)), cycle_length)
        keys: Int64s = (turns * steps[0, 0] + slots)[:, None]
        return keys
    columns = np.arange(lengths.shape[1])
    free = np.repeat(np.arange(cycle_length)[:, None], len(columns), axis=1)
    keys = np.empty_like(lengths)
    for shard, taken in enumerate(steps):
        first = free.min(axis=0)
        keys[shard] = first
        # The key names the slot, too.
        free[first % cycle_length, columns] = first + taken
    return keys


def positions_together(
    lengths: Int64s,
    keys: Int64s,
    places: Int64s,
    offset: int,
    *,
    cycle_length: int,
    block_length: int,
) -> Int64s:
    """Return the position in each interleave (int64[e]) of an example of a shard.

    places: int64[e], which shard of each it is; the example is at `offset` in what that yields.
    """
    block, within = divmod(offset, block_length)
    chosen = keys[places, 0] if keys.shape[1] == 1 else keys[places, np.arange(len(places))]
    visit = chosen + block * cycle_length
    # What each shard yields before: a block a visit, the last of which has the rest.
    visits = np.maximum((visit - keys + (cycle_length - 1)) // cycle_length, 0)
    visits *= block_length
    positions: Int64s = np.minimum(visits, lengths).sum(axis=0) + within
    return positions
