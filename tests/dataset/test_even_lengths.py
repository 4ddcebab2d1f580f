"""Lengths of many shards, made together, are those that TFDS computes one by one."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import strategies as st

import shardctl.dataset.dataset as module
from shardctl.dataset.dataset import even_lengths
from tests.cases import check_cases


def by_tfds(num_examples: int, num_shards: int) -> tuple[int, ...]:
    """Return the differences of TFDS's boundaries (core/utils/shard_utils.py)."""
    ends = [round(num_examples * i / num_shards) for i in range(num_shards + 1)]
    return tuple(b - a for a, b in pairwise(ends))


def test_lengths_are_those_of_the_boundaries_of_tfds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 0)

    def check(rng: random.Random) -> None:
        num_shards = rng.choice([rng.randint(1, 50), rng.randint(1, 2000), 1 << rng.randint(0, 11)])
        # Whole and half quotients are where rounding is decided.
        halves = num_shards * rng.randint(0, 1 << rng.randint(1, 38)) // 2
        num_examples = rng.choice([rng.randint(0, 1 << rng.randint(1, 54)), halves])
        assert even_lengths(num_examples, num_shards) == by_tfds(num_examples, num_shards)

    check_cases(st.integers(0, 2**64).map(random.Random), check, 200)


@pytest.mark.long
def test_many_shards_are_many_pieces() -> None:
    num_examples, num_shards = (1 << 51) + 12_345, 300_007
    assert even_lengths(num_examples, num_shards) == by_tfds(num_examples, num_shards)
