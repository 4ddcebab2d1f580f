"""Stretches drawn from a shuffle buffer's distribution: against all outcomes, and replays."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from shardctl.order.sample import drawn_stretches
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from tests.cases import first

_NUM_DRAWN = 20_000


def _all_outcomes(num_elements: int, size: int) -> Counter[tuple[int, ...]]:
    """Return how often each order comes out when each random number takes each value."""
    orders: Counter[tuple[int, ...]] = Counter()
    places = [range(min(size, num_elements - step)) for step in range(num_elements)]
    for choice in product(*places):
        waiting = list(range(num_elements))
        buffer: list[int] = []
        out: list[int] = []
        for place in choice:
            while waiting and len(buffer) < size:
                buffer.append(waiting.pop(0))
            out.append(buffer.pop(place))
        orders[tuple(out)] += 1
    return orders


@pytest.mark.long
@pytest.mark.parametrize(("num_elements", "size"), [(5, 1), (5, 2), (6, 3), (4, 4), (4, 9)])
@pytest.mark.parametrize("start", first(1, [2, 0, 1]))
def test_a_played_stretch_falls_as_all_random_numbers_make_it(
    num_elements: int, size: int, start: int
) -> None:
    length = num_elements - start
    expected: Counter[tuple[int, ...]] = Counter()
    outcomes = _all_outcomes(num_elements, size)
    for order, count in outcomes.items():
        expected[order[start:]] += count
    total = outcomes.total()
    starts = np.full(_NUM_DRAWN, start)
    drawn = drawn_stretches(num_elements, size, starts, length, np.random.default_rng(start))
    found = Counter(map(tuple, drawn.tolist()))
    assert set(found) <= set(expected)
    for order, count in expected.items():
        chance = count / total
        deviation = (chance * (1 - chance) / _NUM_DRAWN) ** 0.5
        assert found[order] / _NUM_DRAWN == pytest.approx(chance, abs=5 * deviation + 1e-9)


@pytest.mark.parametrize("size", [1, 7, 300, 3000, 12_000])
def test_stretches_fall_as_those_of_replays(size: int) -> None:
    num_elements, length, num_orders = 12_000, 64, 60
    starts = np.array([0, 150, 5000, 11_000, 11_936])
    positions = starts[:, None] + np.arange(length)
    replayed, drawn = [], []
    for seed in range(num_orders):
        order = shuffle_permutation(num_elements, size, KernelSeeds(seed=seed, seed2=77))
        replayed.append(order[positions])
        drawn.append(
            drawn_stretches(num_elements, size, starts, length, np.random.default_rng(seed))
        )
    for row in np.array(drawn).reshape(-1, length):
        assert len(set(row.tolist())) == length
        assert 0 <= row.min() <= row.max() < num_elements
    for measure in (_age, _distance):
        one, other = measure(np.array(replayed), starts), measure(np.array(drawn), starts)
        error = np.hypot(one.std(axis=0), other.std(axis=0)) / num_orders**0.5
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) <= 5 * error + 1e-9).all()


def _age(inputs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    means: np.ndarray = (inputs - starts[:, None]).mean(axis=2)
    return means


def _distance(inputs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    means: np.ndarray = np.abs(np.diff(inputs, axis=2)).mean(axis=2)
    return means
