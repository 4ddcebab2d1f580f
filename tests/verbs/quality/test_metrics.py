"""The metrics of an order and of its parts: against counting, permutations, known orders."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.order.sample import sample_epoch, sample_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import by_position
from shardctl.verbs.quality.metrics import (
    Metric,
    PairKernel,
    UniformMoments,
    _equal_parts,
    displacement_moments,
    far_metrics,
    near_metrics,
    occupancy_moments,
    rank_correlation_moments,
    score_of,
    shards_in_batch,
)
from tests.cases import check_cases
from tests.verbs.quality.quality_orders import (
    buffered,
    counted,
    even_dataset,
    in_equal_shards,
    order_of,
    quality_alone,
    score,
)


@st.composite
def _orders(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6).filter(lambda s: sum(s) > 1))
    n = sum(sizes)
    ranks = draw(st.permutations(range(n)))
    of_rank = np.repeat(np.arange(len(sizes)), sizes)
    return list(ranks), of_rank[list(ranks)].tolist(), draw(st.integers(2, n))


def test_metrics_are_what_counting_one_by_one_gives() -> None:
    def check(case: tuple[list[int], list[int], int]) -> None:
        ranks, shards, window = case
        sample = sample_of(np.array(ranks), np.array(shards))
        found = [*near_metrics(sample, window), *far_metrics(sample)]
        found.append(shards_in_batch(sample, window))
        expected = counted(ranks, shards, window)
        for each in found:
            assert each.value == pytest.approx(expected[each.name], abs=1e-9)
            assert 0 <= each.score <= 1
            assert each.sampling_error is None
        names = {each.name for each in found}
        assert {"neighbour_distance", "batch_coverage", "displacement"} <= names
        several = 1 < len(set(shards)) < len(shards)
        assert ("same_shard_neighbours" in names) == several

    check_cases(_orders(), check, 80)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_shards", [1, 20, 100, 5000])
def test_scores_rise_from_sorted_over_blocks_and_buffers_to_uniform(
    seed: int, num_shards: int
) -> None:
    n, generator = 10_000, np.random.default_rng(seed)
    blocks = generator.permutation(100)
    orders = [
        np.arange(n),
        (blocks[:, None] * 100 + np.arange(100)).ravel(),
        buffered(np.arange(n), 100, generator),
        buffered(np.arange(n), 2000, generator),
        generator.permutation(n),
    ]
    scores = [score(in_equal_shards(order, num_shards), 64) for order in orders]
    values = [each.value for each in scores]
    assert all(low < high for low, high in pairwise(values))
    assert values[0] < 0.02
    assert values[-1] == pytest.approx(scores[-1].expected, abs=5 * scores[-1].spread)


@pytest.mark.long
def test_each_metric_of_uniform_orders_has_the_expectation_and_spread_it_says() -> None:
    generator = np.random.default_rng(12)
    found: list[list[Metric]] = []
    for _ in range(400):
        sample = in_equal_shards(generator.permutation(2000), 16)
        metrics = [*near_metrics(sample, 50), *far_metrics(sample)]
        found.append([*metrics, shards_in_batch(sample, 50)])
    for column in zip(*found, strict=True):
        values, one = np.array([each.value for each in column]), column[0]
        assert values.mean() == pytest.approx(one.expected, abs=5 * one.spread / 20), one.name
        assert values.std() == pytest.approx(one.spread, rel=0.15), one.name


def test_shards_of_one_example_tell_nothing_of_neighbours() -> None:
    sample = in_equal_shards(np.arange(600), 600)
    assert "same_shard_neighbours" not in {each.name for each in near_metrics(sample, 32)}
    assert score(sample, 32).value < 0.02


def test_shards_that_are_too_small_to_count_beside_another_are_left_out() -> None:
    """One shard of 2**62 examples and two of 30: all neighbours are of one shard, in a float."""
    sample = replace(
        sample_of(np.arange(60), np.arange(60) // 20), shard_sizes=np.array([30, 2**62, 25])
    )
    metrics = near_metrics(sample, 4)
    assert [each.name for each in metrics] == ["neighbour_distance", "batch_coverage"]
    assert 0 <= score_of(metrics).value <= 1


@pytest.mark.parametrize(
    ("num_ranks", "count"),
    [
        (10, 3),
        (10, 10),
        (2**53 - 1, 2**10),
        (2**53, 2**10),
        (2**53 + 1, 2**10 + 1),
        (2**62 + 9, 10),
    ],
)
def test_parts_are_as_large_as_they_say_however_many_examples_there_are(
    num_ranks: int, count: int
) -> None:
    empty = sample_of(np.array([0, 1]), np.array([0, 0]))
    sizes = _equal_parts(replace(empty, num_ranks=num_ranks), count)[1]
    assert (len(sizes), int(sizes.sum())) == (count, num_ranks)
    assert set(sizes[:-1].tolist()) <= {num_ranks // count, -(-num_ranks // count)}
    stops = np.cumsum(sizes)
    ranks = np.stack([stops - sizes, stops - 1])
    parts = _equal_parts(replace(empty, num_ranks=num_ranks, ranks=ranks), count)[0]
    assert parts.tolist() == [list(range(count))] * 2


# What a uniform permutation shows: against every permutation, and against many drawn at random.


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


# The parts of an epoch: where each begins and ends, and what is measured of it alone.


@pytest.mark.parametrize(
    ("num_examples", "window", "bounds"),
    [
        pytest.param(1000, 10, list(range(0, 1001, 100)), id="ten parts of ten batches"),
        pytest.param(105, 10, [*range(0, 91, 10), 105], id="the last part takes the rest"),
        pytest.param(35, 10, [0, 10, 20, 35], id="no part without a whole batch"),
        pytest.param(9, 10, [0, 9], id="less than a batch is one part"),
    ],
)
def test_parts_begin_with_a_batch_and_make_up_the_epoch(
    num_examples: int, window: int, bounds: list[int]
) -> None:
    parts = by_position(in_equal_shards(np.arange(num_examples), 3), window)
    assert [part.start for part in parts] == bounds[:-1]
    assert [part.stop for part in parts] == bounds[1:]


def test_a_part_is_measured_as_if_its_positions_were_all_there_is() -> None:
    ranks = np.random.default_rng(0).permutation(400)
    ranks[200:] = np.sort(ranks[200:])
    sample = in_equal_shards(ranks, 5)
    parts = by_position(sample, 20)
    for part in parts:
        inside = slice(part.start, part.stop)
        alone = sample_of(ranks, sample.shards[0]).part(part.start / 400, part.stop / 400, 20)
        assert part.score == score_of(near_metrics(alone, 20))
        assert part.mean_storage == pytest.approx((ranks[inside] + 0.5).mean() / 400)
    # The first half is uniform, the second goes through storage.
    assert min(p.score.value for p in parts[:5]) > max(p.score.value for p in parts[5:])


def test_the_end_of_an_epoch_mixes_worse() -> None:
    # 17 shards in a cycle of 16: the last is read with nothing left beside it.
    settings = ReadSettings(shuffle_seed=1, buffer=5000, buffer_seed=1)
    first, *_, last = quality_alone(even_dataset(200_000, 17), settings).by_position
    assert last.score.value < first.score.value


@pytest.mark.parametrize(("stretches", "count"), [(16, 8), (40, 10)])
def test_a_part_of_an_epoch_that_is_sampled_has_two_stretches(stretches: int, count: int) -> None:
    order = order_of(1_000_000, 40, ReadSettings(cycle=1))
    sample = sample_epoch(order, window=32, limit=1000, num_measured=stretches * 256)
    assert len(sample.starts) == stretches
    parts, edges = by_position(sample, 32), [round(i / count * 10**6) for i in range(count + 1)]
    assert [(part.start, part.stop) for part in parts] == list(pairwise(edges))
    for index, part in enumerate(parts):
        # Read shard by shard a part of the epoch is that part of storage.
        assert part.mean_storage == pytest.approx((index + 0.5) / count, abs=0.03)
