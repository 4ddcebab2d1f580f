"""When shards open: always as a heap of the slots says."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapreplace
from random import Random

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.tfdata.schedule import opening_keys

_CASES = 60
# How lengths are drawn: alike, of two kinds, spread, most of them empty, few of them long.
_DRAWN: dict[str, Callable[[np.random.Generator, int], Int64s]] = {
    "one": lambda rng, n: np.full(n, 37),
    "alike": lambda rng, n: rng.integers(900, 1100, n),
    "two": lambda rng, n: rng.choice([1000, 1040], n),
    "spread": lambda rng, n: rng.integers(0, 20_000, n),
    "empty": lambda rng, n: rng.choice([0, 0, 0, 5000], n),
    "skewed": lambda rng, n: rng.lognormal(6, 1.5, n).astype(np.int64),
    "huge": lambda rng, n: rng.integers(2**40, 2**41, n),
}


def by_heap(lengths: Int64s, block_length: int, num_slots: int) -> list[int]:
    """Return the keys of the first visits, a shard at a time."""
    free = list(range(num_slots))
    visits = [length // block_length + 1 for length in lengths.tolist()]
    return [heapreplace(free, free[0] + count * num_slots) for count in visits]


@pytest.mark.parametrize("drawn", _DRAWN)
def test_shards_open_as_by_the_heap(drawn: str) -> None:
    for seed in range(_CASES):
        random = Random(f"{drawn} {seed}")
        num_shards = random.choice((1, 2, 30, 300, 3000))
        num_slots = random.choice((1, 2, 3, 16, 24, 25, 64, 200, 1000))
        block_length = random.choice((1, 2, 16, 50, 5001))
        lengths = _DRAWN[drawn](np.random.default_rng(seed), num_shards)
        case = (drawn, seed, num_shards, num_slots, block_length)
        found = opening_keys(lengths, block_length, num_slots).tolist()
        assert found == by_heap(lengths, block_length, num_slots), case


@pytest.mark.parametrize("num_slots", [20, 40, 700])
def test_long_lists_open_as_by_the_heap(num_slots: int) -> None:
    # Alike for two pieces, then so far apart that batches become few.
    rng = np.random.default_rng(num_slots)
    lengths = np.concatenate([rng.integers(900, 1100, 40_000), rng.integers(0, 9, 20_000) ** 5])
    assert opening_keys(lengths, 1, num_slots).tolist() == by_heap(lengths, 1, num_slots)


def test_free_keys_may_be_larger_than_63_bits() -> None:
    lengths = np.array([2**56] * 100 + [2**60, 2**62])
    for shards in (lengths, lengths[::-1].copy(), lengths[:100]):
        assert opening_keys(shards, 1, 99).tolist() == by_heap(shards, 1, 99)
