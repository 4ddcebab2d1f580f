"""What is measured of an order: all of it, or a sample that agrees with all of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shardctl.order.sample import OrderSample, sample_epoch
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.metrics import far_metrics, near_metrics
from tests.verbs.quality.quality_orders import order_of, score

_PIPELINES = [
    ReadSettings(),
    ReadSettings(shuffle_seed=1),
    ReadSettings(buffer=20, buffer_seed=1),
    ReadSettings(shuffle_seed=1, buffer=1000, buffer_seed=2),
    ReadSettings(shuffle_seed=1, buffer=9000, buffer_seed=2, block=1),
    ReadSettings(cycle=3, shuffle_seed=1, buffer=-2, buffer_seed=2),
    ReadSettings(shuffle_seed=1, host=Host(index=1, count=3), host_by="examples"),
    ReadSettings(
        shuffle_seed=4, host=Host(index=1, count=3), host_by="files", buffer=500, buffer_seed=1
    ),
]


@pytest.mark.parametrize("settings", _PIPELINES)
def test_a_sample_agrees_with_the_whole_within_its_error(settings: ReadSettings) -> None:
    order = order_of(400_000, 200, settings)
    whole = sample_epoch(order, window=64)
    part = sample_epoch(order, window=64, limit=1000, num_measured=50_000)
    assert whole.complete
    assert not part.complete
    assert part.num_measured < whole.num_measured
    for one, other in zip(_metrics(whole), _metrics(part), strict=True):
        assert one.sampling_error is None
        assert other.sampling_error is not None
        # Five standard errors; drawing the buffer, not replaying it, adds the spread of the whole.
        room = 5 * (other.sampling_error + one.spread) + 0.002 * abs(one.value)
        assert other.value == pytest.approx(one.value, abs=room), one.name
        assert other.expected == pytest.approx(one.expected, rel=0.01, abs=1e-4)
    error = score(part, 64).sampling_error
    assert error is not None
    assert score(part, 64).value == pytest.approx(score(whole, 64).value, abs=5 * error + 0.003)


def _metrics(sample: OrderSample) -> list:
    return [*near_metrics(sample, 64, 100), *far_metrics(sample)]


def test_a_whole_order_is_the_order() -> None:
    order = order_of(1000, 7, ReadSettings(shuffle_seed=1, buffer=50, buffer_seed=1, epochs=2))
    for epoch in (0, 1):
        sample = sample_epoch(order, epoch=epoch)
        assert sample.ranks[0].tolist() == order.read(1000 * epoch, 1000 * epoch + 1000).tolist()


def test_a_sample_without_a_buffer_is_of_the_order() -> None:
    order = order_of(500_000, 70, ReadSettings(shuffle_seed=1))
    sample = sample_epoch(order, limit=1000, num_measured=10_000)
    for start, codes in zip(sample.starts.tolist(), sample.codes, strict=True):
        assert codes.tolist() == order.read(start, start + sample.length).tolist()


def test_stretches_lie_one_in_each_equal_part_of_the_epoch() -> None:
    sample = sample_epoch(order_of(100_003, 9, ReadSettings()), limit=10, num_measured=5000)
    edges = np.arange(len(sample.starts) + 1) * 100_003 / len(sample.starts)
    for start, (first, last) in zip(sample.starts.tolist(), pairwise(edges), strict=True):
        assert np.floor(first) <= start
        assert start + sample.length <= last


def test_parts_divide_what_is_measured() -> None:
    order = order_of(300_000, 20, ReadSettings(shuffle_seed=1))
    for sample in (sample_epoch(order), sample_epoch(order, limit=10)):
        cuts = [0, 0.3, 0.5, 1.0]
        parts = [sample.part(first, last) for first, last in pairwise(cuts)]
        assert sum(part.num_measured for part in parts) == sample.num_measured
        axis = 1 if sample.complete else 0
        together = np.concatenate([part.ranks for part in parts], axis=axis)
        assert np.array_equal(together, sample.ranks)
        positions = (parts[2].starts[:, None] + np.arange(parts[2].length) + 0.5) / 300_000
        assert np.allclose(parts[2].offsets, positions - (parts[2].ranks + 0.5) / 300_000)


def test_examples_of_ds_shard_or_read_twice_rank_among_those_handed_out() -> None:
    settings = ReadSettings(host=Host(index=2, count=3), host_by="examples")
    order = order_of(100, 4, settings)
    sample = sample_epoch(order)
    codes = order.read(0, order.num_examples).tolist()
    assert sample.ranks[0].tolist() == [sorted(codes).index(code) for code in codes]
    assert int(sample.shard_sizes.sum()) == len(codes)
