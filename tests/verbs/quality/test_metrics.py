"""The metrics of an order: against counting one by one, and their order over known orders."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.order.sample import sample_epoch, sample_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.metrics import _equal_parts, far_metrics, near_metrics, shards_in_batch
from shardctl.verbs.quality.score import Metric, score_of
from tests.cases import check_cases
from tests.verbs.quality.quality_orders import (
    buffered,
    counted,
    in_equal_shards,
    metric,
    order_of,
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
        found = [*near_metrics(sample, window, 0), *far_metrics(sample)]
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


@pytest.mark.parametrize("files", [{"shuffle_files": False}, {"shuffle_seed": 3}])
def test_scores_of_pipelines_rise_with_the_buffer(files: dict[str, int]) -> None:
    sizes = [None, 30, 300, 3000, 30_000, -2]
    scores = []
    for size in sizes:
        seed = None if size is None else 5
        settings = ReadSettings(buffer=size, buffer_seed=seed, **files)  # type: ignore[arg-type]
        scores.append(score(sample_epoch(order_of(60_000, 64, settings)), 256))
    values = [each.value for each in scores]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(scores[-1].expected, abs=5 * scores[-1].spread)


@pytest.mark.long
def test_each_metric_of_uniform_orders_has_the_expectation_and_spread_it_says() -> None:
    generator = np.random.default_rng(12)
    found: list[list[Metric]] = []
    for _ in range(400):
        sample = in_equal_shards(generator.permutation(2000), 16)
        metrics = [*near_metrics(sample, 50, 40), *far_metrics(sample)]
        found.append([*metrics, shards_in_batch(sample, 50)])
    for column in zip(*found, strict=True):
        values, one = np.array([each.value for each in column]), column[0]
        assert values.mean() == pytest.approx(one.expected, abs=5 * one.spread / 20), one.name
        assert values.std() == pytest.approx(one.spread, rel=0.15), one.name


def test_a_reversed_order_is_no_better_than_a_sorted_one() -> None:
    one, other = (
        score(in_equal_shards(order, 10), 32).value
        for order in (np.arange(3000), np.arange(3000)[::-1].copy())
    )
    assert other < 0.01
    assert one < 0.01


@pytest.mark.long
@pytest.mark.parametrize("name", ["same_shard_neighbours", "neighbour_distance"])
def test_neighbours_in_all_permutations_are_as_expected(name: str) -> None:
    found = [
        metric(near_metrics(in_equal_shards(np.array(order), 3), 2), name)
        for order in permutations(range(6))
    ]
    values = [each.value for each in found]
    assert found[0].expected == pytest.approx(np.mean(values))
    assert found[0].spread == pytest.approx(np.std(values))


def test_shards_of_one_example_tell_nothing_of_neighbours() -> None:
    sample = in_equal_shards(np.arange(600), 600)
    assert "same_shard_neighbours" not in {each.name for each in near_metrics(sample, 32)}
    assert score(sample, 32).value < 0.02


@pytest.mark.parametrize("num_classes", [0, 7])
def test_batches_of_one_class_are_pure(num_classes: int) -> None:
    sample = in_equal_shards(np.arange(7000), 7)
    purity = metric(near_metrics(sample, 100, num_classes), "class_purity")
    assert purity.value == 1.0
    assert purity.expected == pytest.approx(999 / 6999)
    assert purity.score == pytest.approx(999 / 6999)  # one class where seven are expected


def test_knowing_that_labels_are_sorted_makes_no_order_better() -> None:
    generator = np.random.default_rng(1)
    blocks = (generator.permutation(100)[:, None] * 100 + np.arange(100)).ravel()
    for order in (blocks, buffered(blocks, 300, generator), buffered(blocks, 3000, generator)):
        sample = in_equal_shards(order, 100)
        plain, known = (
            score_of([*near_metrics(sample, 64, classes), *far_metrics(sample)]).value
            for classes in (None, 50)
        )
        assert known < 1.2 * plain


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
