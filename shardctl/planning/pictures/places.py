"""Where in storage the examples of an epoch lie, one after the other."""

from __future__ import annotations

import numpy as np

from shardctl.core.order.order import Order
from shardctl.planning.pictures.shard_map import one_in_each_part
from shardctl.planning.quality.sample import (
    COMPLETE_LIMIT,
    Floats,
    codes_of_stretches,
    epoch_length,
    sample_epoch,
)
from shardctl.planning.quality.storage_order import storage_order

_LOOKED_UP = 1 << 16  # positions of a long epoch


def places(order: Order) -> Floats:
    """Return how far into storage the examples of the first epoch lie, in its order, float64[n].

    0 is the start of what is read and 1 its end; each is the middle of what an example takes. Of an
    epoch of more than two million examples single positions are looked up, one in each of equal
    parts: a stretch would show the few shards that the interleave has open.

    >>> from shardctl.planning.order import plan_order
    >>> places(plan_order("mnist", "train[:4]").order).tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    num_positions = epoch_length(order)
    if num_positions <= COMPLETE_LIMIT:
        sample = sample_epoch(order)
        return np.asarray((sample.ranks[0] + 0.5) / sample.num_ranks, np.float64)
    generator = np.random.default_rng(0)
    positions = one_in_each_part(0, num_positions, _LOOKED_UP, generator)
    storage = storage_order(order)
    ranks, _ = storage.of(codes_of_stretches(order, 0, positions, 1, exact=False).ravel())
    return np.asarray((ranks + 0.5) / storage.num_ranks, np.float64)
