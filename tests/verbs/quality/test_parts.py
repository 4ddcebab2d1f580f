"""The parts of an epoch: where each begins and ends, and what is measured of it alone."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.order.sample import sample_epoch, sample_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import by_position
from shardctl.verbs.quality.metrics import near_metrics
from shardctl.verbs.quality.score import score_of
from tests.verbs.quality.quality_orders import (
    even_dataset,
    in_equal_shards,
    metric,
    order_of,
    quality_alone,
)


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
    parts, _ = by_position(in_equal_shards(np.arange(num_examples), 3), window, None)
    assert [part.start for part in parts] == bounds[:-1]
    assert [part.stop for part in parts] == bounds[1:]


def test_a_part_is_measured_as_if_its_positions_were_all_there_is() -> None:
    ranks = np.random.default_rng(0).permutation(400)
    ranks[200:] = np.sort(ranks[200:])
    sample = in_equal_shards(ranks, 5)
    parts, _ = by_position(sample, 20, None)
    for part in parts:
        inside = slice(part.start, part.stop)
        alone = sample_of(ranks, sample.shards[0]).part(part.start / 400, part.stop / 400, 20)
        assert list(part.metrics) == near_metrics(alone, 20)
        assert part.score == score_of(part.metrics)
        assert part.mean_storage == pytest.approx((ranks[inside] + 0.5).mean() / 400)
    # The first half is uniform, the second goes through storage.
    assert min(p.score.value for p in parts[:5]) > max(p.score.value for p in parts[5:])


@pytest.mark.parametrize(
    ("num_examples", "window", "start"),
    [
        pytest.param(10_000, 10, 9900, id="the last hundredth"),
        pytest.param(10_000, 300, 9600, id="a batch where that is more"),
        pytest.param(1000, 60, None, id="none where it would be most of a part"),
    ],
)
def test_the_tail_is_the_last_hundredth_or_batch(
    num_examples: int, window: int, start: int | None
) -> None:
    _, tail = by_position(in_equal_shards(np.arange(num_examples), 8), window, None)
    if start is None:
        assert tail is None
    else:
        assert tail is not None
        assert (tail.start, tail.stop) == (start, num_examples)


def test_of_an_epoch_that_is_sampled_each_part_has_its_own_stretches() -> None:
    order = order_of(1_000_000, 40, ReadSettings(cycle=1))
    sample = sample_epoch(order, window=32, limit=1000, num_measured=40 * 256)
    parts, _ = by_position(sample, 32, None)
    assert [part.start for part in parts] == list(range(0, 1_000_000, 100_000))
    assert [part.stop for part in parts] == list(range(100_000, 1_000_001, 100_000))
    for index, part in enumerate(parts):
        # Read shard by shard a tenth of the epoch is a tenth of storage.
        assert part.mean_storage == pytest.approx((index + 0.5) / 10, abs=0.03)


@pytest.mark.parametrize(("stretches", "count"), [(16, 8), (40, 10)])
def test_a_part_of_an_epoch_that_is_sampled_has_two_stretches(stretches: int, count: int) -> None:
    order = order_of(1_000_000, 40, ReadSettings(cycle=1))
    sample = sample_epoch(order, window=32, limit=1000, num_measured=stretches * 256)
    assert len(sample.starts) == stretches
    parts, tail = by_position(sample, 32, None)
    assert [part.start for part in parts] == [round(i / count * 1_000_000) for i in range(count)]
    assert (tail is None) == (stretches < 40)  # the last two stretches would be half a part
    if tail is not None:
        assert (tail.start, tail.stop) == (950_000, 1_000_000)


def test_the_end_of_an_epoch_mixes_worse() -> None:
    # 17 shards in a cycle of 16: the last is read with nothing left beside it.
    dataset = even_dataset(200_000, 17)
    found = quality_alone(dataset, ReadSettings(shuffle_seed=1, buffer=5000, buffer_seed=1))
    early, tail = found.by_position[0], found.tail
    assert tail is not None
    assert (tail.start % 256, tail.stop) == (0, 200_000)
    assert 2000 <= tail.stop - tail.start < 2256  # the last 1%, from where a batch begins
    assert tail.score.value < 0.7 * early.score.value
    assert found.by_position[-1].score.value < early.score.value
    first, last = (metric(each.metrics, "same_shard_neighbours") for each in (early, tail))
    assert last.value > 3 * first.value


def test_places_in_storage_show_where_a_part_comes_from() -> None:
    found = quality_alone(even_dataset(50_000, 100), ReadSettings(cycle=1))
    for index, part in enumerate(found.by_position):
        assert part.mean_storage == pytest.approx((index + 0.5) / 10, abs=0.003)
