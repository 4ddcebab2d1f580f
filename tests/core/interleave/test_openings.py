"""When shards open: always as a heap of the slots says."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapreplace
from random import Random

import numpy as np
import pytest

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.schedule import opening_keys

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


def by_heap(lengths: Int64s, block_length: int, free: list[int]) -> tuple[list[int], list[int]]:
    """Return the keys of the first visits, and the free ones after, a shard at a time."""
    free = list(free)
    keys = [
        heapreplace(free, free[0] + (length // block_length + 1) * len(free))
        for length in lengths.tolist()
    ]
    return keys, sorted(free)


@pytest.mark.parametrize("drawn", _DRAWN)
def test_lists_one_after_the_other_open_as_by_the_heap(drawn: str) -> None:
    for seed in range(_CASES):
        random = Random(f"{drawn} {seed}")
        num_shards = random.choice((0, 1, 2, 30, 300, 3000))
        num_slots = random.choice((1, 2, 3, 16, 24, 25, 64, 200, 1000))
        block_length = random.choice((1, 2, 16, 50, 5001))
        lengths = _DRAWN[drawn](np.random.default_rng(seed), num_shards)
        want, rest = by_heap(lengths, block_length, list(range(num_slots)))
        cuts = sorted(random.randint(0, num_shards) for _ in range(random.choice((0, 1, 3))))
        keys, free = [], list(range(num_slots))
        for start, stop in zip([0, *cuts], [*cuts, num_shards], strict=True):
            found, free = opening_keys(lengths[start:stop], block_length, free)
            keys += found.tolist()
        case = (drawn, seed, num_shards, num_slots, block_length, cuts)
        assert keys == want, case
        assert free == rest, case


@pytest.mark.parametrize("num_slots", [20, 40, 700])
def test_long_lists_open_as_by_the_heap(num_slots: int) -> None:
    # Alike for two pieces, then so far apart that batches become few.
    rng = np.random.default_rng(num_slots)
    lengths = np.concatenate([rng.integers(900, 1100, 40_000), rng.integers(0, 9, 20_000) ** 5])
    keys, free = opening_keys(lengths, 1, list(range(num_slots)))
    assert (keys.tolist(), free) == by_heap(lengths, 1, list(range(num_slots)))


def test_free_keys_may_be_larger_than_63_bits() -> None:
    lengths = np.array([2**56] * 100 + [2**60, 2**62])
    for shards in (lengths, lengths[::-1].copy(), lengths[:100]):
        keys, free = opening_keys(shards, 1, list(range(99)))
        assert (keys.tolist(), free) == by_heap(shards, 1, list(range(99)))
        assert free[-1] > 2**62
