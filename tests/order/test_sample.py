"""What is measured of an order, and where in storage it lies: against examples one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.sample import OrderSample, StorageOrder, sample_epoch
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.quality.metrics import far_metrics, near_metrics
from tests.cases import check_cases
from tests.strategies import shard_lengths
from tests.verbs.quality.quality_orders import order_of, score

_PIPELINES: list[dict[str, Any]] = [
    {},
    {"shuffle_seed": 1},
    {"buffer": 20, "buffer_seed": 1},
    {"shuffle_seed": 1, "buffer": 1000, "buffer_seed": 2},
    {"shuffle_seed": 1, "buffer": 9000, "buffer_seed": 2, "block": 1},
    {"cycle": 3, "shuffle_seed": 1, "buffer": -2, "buffer_seed": 2},
    {"shuffle_seed": 1, "host": Host(index=1, count=3), "host_by": "examples"},
    {"host": Host(index=1, count=3), "host_by": "files", "buffer": 500, "buffer_seed": 1},
]


@pytest.mark.parametrize("settings", _PIPELINES)
def test_a_sample_agrees_with_the_whole_within_its_error(settings: dict[str, Any]) -> None:
    order = order_of(400_000, 200, ReadSettings(**settings))
    whole = sample_epoch(order, window=64)
    part = sample_epoch(order, window=64, limit=1000, num_measured=50_000)
    assert (whole.complete, part.complete) == (True, False)
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
    return [*near_metrics(sample, 64), *far_metrics(sample)]


def test_a_sample_is_of_the_order() -> None:
    order = order_of(1000, 7, ReadSettings(shuffle_seed=1, buffer=50, buffer_seed=1, epochs=2))
    for epoch in (0, 1):
        sample = sample_epoch(order, epoch=epoch)
        assert sample.ranks[0].tolist() == order.read(1000 * epoch, 1000 * epoch + 1000).tolist()
    order = order_of(500_000, 70, ReadSettings(shuffle_seed=1))
    sample = sample_epoch(order, limit=1000, num_measured=10_000)
    edges = np.arange(len(sample.starts) + 1) * 500_000 / len(sample.starts)
    stretches = zip(sample.starts.tolist(), pairwise(edges), sample.codes, strict=True)
    for start, (first, last), codes in stretches:  # one in each equal part of the epoch
        assert np.floor(first) <= start <= last - sample.length
        assert codes.tolist() == order.read(start, start + sample.length).tolist()


def test_parts_divide_what_is_measured() -> None:
    order = order_of(300_000, 20, ReadSettings(shuffle_seed=1))
    for sample in (sample_epoch(order), sample_epoch(order, limit=10)):
        parts = [sample.part(first, last) for first, last in pairwise([0, 0.3, 0.5, 1.0])]
        assert sum(part.num_measured for part in parts) == sample.num_measured
        axis = 1 if sample.complete else 0
        together = np.concatenate([part.ranks for part in parts], axis=axis)
        assert np.array_equal(together, sample.ranks)
        positions = (parts[2].starts[:, None] + np.arange(parts[2].length) + 0.5) / 300_000
        assert np.allclose(parts[2].offsets, positions - (parts[2].ranks + 0.5) / 300_000)


def test_examples_of_ds_shard_rank_among_those_handed_out() -> None:
    order = order_of(100, 4, ReadSettings(host=Host(index=2, count=3), host_by="examples"))
    sample, codes = sample_epoch(order), order.read(0, order.num_examples).tolist()
    assert sample.ranks[0].tolist() == [sorted(codes).index(code) for code in codes]
    assert int(sample.shard_sizes.sum()) == len(codes)


# Places in storage.


@st.composite
def _ranges(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    lengths = draw(shard_lengths().filter(any))
    bounds = st.tuples(st.integers(0, sum(lengths)), st.integers(0, sum(lengths)))
    ranges = draw(st.lists(bounds.map(lambda b: (min(b), max(b))), min_size=1, max_size=4))
    return lengths, ranges


def test_a_rank_is_the_place_among_the_examples_that_are_read() -> None:
    def check(case: tuple[tuple[int, ...], list[tuple[int, int]]]) -> None:
        lengths, bounds = case
        split = Split(name="train", shard_lengths=lengths)
        dataset = Dataset(name="d", splits=(split,))
        pieces = [SplitRange(split=split, start=start, stop=stop) for start, stop in bounds]
        storage = StorageOrder(reads_of(dataset, pieces), ExampleCodes(dataset, ["train"]))
        every = [i for start, stop in bounds for i in range(start, stop)]
        ids = sorted(set(every))
        shard_of = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        read = sorted({shard_of[i] for i in ids})
        assert (storage.num_ranks, storage.num_read) == (len(ids), len(every))
        sizes = [sum(shard_of[i] == shard for i in ids) for shard in read]
        assert storage.shard_sizes.tolist() == sizes
        firsts = [min(i for i in ids if shard_of[i] == shard) for shard in read]
        assert storage.first_codes.tolist() == firsts
        for asked in (ids, ids[::-1], ids[-1:]) if ids else ():  # by a table, or one by one
            ranks, shards = storage.of(np.array(asked))
            assert ranks.tolist() == [ids.index(i) for i in asked]
            assert shards.tolist() == [read.index(shard_of[i]) for i in asked]

    check_cases(_ranges(), check, 60)
