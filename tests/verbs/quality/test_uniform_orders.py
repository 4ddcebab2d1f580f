"""What a uniform permutation shows: against every permutation, and against many drawn at random."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.verbs.quality.metrics import (
    PairKernel,
    UniformMoments,
    displacement_moments,
    occupancy_moments,
    rank_correlation_moments,
)
from tests.cases import check_cases


def _all_orders(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n))))


def _agrees(uniform: UniformMoments, values: np.ndarray) -> None:
    assert uniform.expected == pytest.approx(values.mean(), rel=1e-9)
    assert uniform.spread == pytest.approx(values.std(), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_moments_are_those_of_all_permutations(n: int) -> None:
    orders = _all_orders(n)
    distances = np.abs(np.diff(orders, axis=1)).mean(axis=1) / n
    _agrees(PairKernel.of_distances(n).moments(n - 1, n - 2, n), distances)
    offsets = orders - np.arange(n)
    _agrees(displacement_moments(n, n, n), np.abs(offsets).mean(axis=1) / n)
    rho = 1 - 6 * (offsets**2).sum(axis=1) / (n * (n * n - 1))
    uniform = rank_correlation_moments(n, n)
    assert rho.mean() == pytest.approx(uniform.expected, abs=1e-12)
    assert rho.std() == pytest.approx(uniform.spread)


_SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda s: 2 <= sum(s) <= 7)


@pytest.mark.long
def test_moments_of_groups_are_those_of_all_permutations() -> None:
    def check(case: tuple[list[int], int]) -> None:
        sizes, drawn = np.array(case[0]), case[1]
        n = int(sizes.sum())
        drawn = 1 + drawn % n
        groups = np.repeat(np.arange(len(sizes)), sizes)[_all_orders(n)]
        same = (groups[:, 1:] == groups[:, :-1]).mean(axis=1)
        kernel = PairKernel.of_groups(sizes)
        _agrees(kernel.moments(n - 1, n - 2), same)
        touched = np.array([len(set(row)) for row in groups[:, :drawn].tolist()])
        _agrees(occupancy_moments(sizes, drawn, 1), touched)
        if drawn > 1:
            pairs = drawn * (drawn - 1) // 2
            uniform = kernel.moments(pairs, pairs * (drawn - 2))
            every = [
                sum(row[i] == row[j] for i in range(drawn) for j in range(i)) / pairs
                for row in groups[:, :drawn].tolist()
            ]
            _agrees(uniform, np.array(every))

    check_cases(st.tuples(_SIZES, st.integers(0, 6)), check, 40)


@pytest.mark.long
def test_many_sizes_of_cells_agree_with_drawn_permutations() -> None:
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 120, 90)
    cells = np.repeat(np.arange(90), sizes)
    touched = np.array([len(set(generator.permutation(cells)[:60])) for _ in range(4000)])
    uniform = occupancy_moments(sizes, 60, 1)
    assert touched.mean() == pytest.approx(
        uniform.expected, abs=5 * uniform.spread / math.sqrt(4000)
    )
    assert touched.std() == pytest.approx(uniform.spread, rel=0.06)


def test_a_long_window_is_the_product_of_its_draws() -> None:
    # C(n - a, b) / C(n, b) by the logarithm of the gamma function.
    n, size, drawn = 1_000_000, 50, 30_000
    missed = math.exp(
        math.lgamma(n - size + 1)
        - math.lgamma(n - size - drawn + 1)
        - math.lgamma(n + 1)
        + math.lgamma(n - drawn + 1)
    )
    uniform = occupancy_moments(np.full(n // size, size), drawn, 1)
    assert uniform.expected == pytest.approx(n // size * (1 - missed), rel=1e-6)


@pytest.mark.long
def test_a_sample_spreads_as_samples_of_drawn_permutations_do() -> None:
    n, length, count = 3000, 20, 30
    generator = np.random.default_rng(5)
    starts = np.arange(count) * (n // count) + 40
    positions = starts[:, None] + np.arange(length)
    found = []
    for _ in range(3000):
        ranks = generator.permutation(n)[positions]
        offsets = (positions - ranks) / n
        found.append(
            (
                np.abs(offsets).mean(),
                1 - 6 * (offsets**2).mean(),
                np.abs(np.diff(ranks, axis=1)).mean() / n,
            )
        )
    measured = count * length
    expectations = (
        displacement_moments(n, measured, n),
        rank_correlation_moments(n, measured),
        PairKernel.of_distances(n).moments(count * (length - 1), count * (length - 2), n),
    )
    for values, uniform in zip(np.array(found).T, expectations, strict=True):
        assert values.mean() == pytest.approx(
            uniform.expected, abs=5 * uniform.spread / math.sqrt(3000)
        )
        assert values.std() == pytest.approx(uniform.spread, rel=0.07)
