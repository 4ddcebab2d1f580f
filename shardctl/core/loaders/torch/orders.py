"""PyTorch's own order: RandomSampler and DistributedSampler, cut into batches by DataLoader."""

from __future__ import annotations

import math

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import EpochByEpoch, HandedOut, batches_of_epochs


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of a DataLoader hands out."""
    n, world = asked.num_examples, asked.num_hosts
    per_host = n // world if asked.drop_shard_remainder else math.ceil(n / world)
    sizes, batches = batches_of_epochs(
        [per_host] * asked.epochs, asked.batch, drop_remainder=asked.drop_remainder
    )

    def epoch(number: int) -> Int64s:
        order = _randperm(n, (asked.seed or 0) + asked.first_epoch + number)
        order = np.resize(order, per_host * world) if len(order) else order
        return order[asked.host :: world][: sizes[number]]

    return EpochByEpoch(sizes, epoch, batches=batches, shuffles=True, is_uniform=True)


def _randperm(n: int, seed: int) -> Int64s:
    bits = np.random.MT19937()
    bits._legacy_seeding(seed & 0xFFFFFFFF)
    draws = bits.random_raw(max(n - 1, 0)).astype(np.int64) % (n - np.arange(max(n - 1, 0)))
    found = np.arange(n)
    for i, d in enumerate(draws.tolist()):
        found[i], found[i + d] = found[i + d], found[i]
    return found
