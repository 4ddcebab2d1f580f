"""Many shuffles at once are those that are replayed one by one."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.tfdata import shuffle_permutations as module
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_permutations import permutations, shuffled_in_turn
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    seeds_of_iterator,
    seeds_of_iterators,
)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 70])
@pytest.mark.parametrize("num_elements", [1, 2, 3, 4, 5, 17, 64, 301])
def test_each_column_is_the_shuffle_of_its_seeds(num_elements: int, count: int) -> None:
    drawn = np.random.default_rng(num_elements).integers(0, 2**64, (count, 2), np.uint64)
    drawn[::3] &= np.uint64(0xFFFFFFFF)  # as TensorFlow draws them
    expected = [alone(num_elements, *pair) for pair in drawn.tolist()]
    assert permutations(num_elements, drawn).T.tolist() == expected
    in_turn = shuffled_in_turn(num_elements, drawn)
    assert in_turn.reshape(count, num_elements).tolist() == expected


def alone(num_elements: int, seed: int, seed2: int) -> list[int]:
    """Return the shuffle of one pair of seeds."""
    seeds = KernelSeeds(seed=seed, seed2=seed2)
    order: list[int] = shuffle_permutation(num_elements, num_elements, seeds).tolist()
    return order


def test_they_are_made_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = np.arange(200, dtype=np.uint64).reshape(100, 2)
    whole = shuffled_in_turn(5, seeds)
    monkeypatch.setattr(module, "ROOM", 180)
    assert shuffled_in_turn(5, seeds).tolist() == whole.tolist()


def test_the_seeds_of_many_iterators_are_those_of_each() -> None:
    kernel = KernelSeeds(seed=87654321, seed2=7)
    for iterators in (range(0), range(1), range(3, 4), range(5, 12), range(2**60, 2**60 + 3)):
        expected = [seeds_of_iterator(kernel, one) for one in iterators]
        found = seeds_of_iterators(kernel, iterators)
        assert found.tolist() == [[pair.seed, pair.seed2] for pair in expected]
