"""Places in storage: against a sorted list of the examples."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.sample import StorageOrder, storage_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange
from tests.cases import check_cases
from tests.strategies import shard_lengths


@st.composite
def _cases(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    lengths = draw(shard_lengths().filter(any))
    bounds = st.tuples(st.integers(0, sum(lengths)), st.integers(0, sum(lengths)))
    ranges = draw(st.lists(bounds.map(lambda b: (min(b), max(b))), min_size=1, max_size=4))
    return lengths, ranges


def test_a_rank_is_the_place_among_the_examples_that_are_read() -> None:
    def check(case: tuple[tuple[int, ...], list[tuple[int, int]]]) -> None:
        lengths, bounds = case
        split = Split(name="train", shard_lengths=lengths)
        dataset = Dataset(name="d", splits=(split,))
        several = [
            reads_of(dataset, [SplitRange(split=split, start=start, stop=stop)])
            for start, stop in bounds
        ]
        ids = sorted({i for start, stop in bounds for i in range(start, stop)})
        shard_of = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        read = sorted({shard_of[i] for i in ids})
        storage = StorageOrder(several, ExampleCodes(dataset, ["train"]))
        assert storage.num_ranks == len(ids)
        assert storage.num_read == sum(stop - start for start, stop in bounds)
        assert storage.shard_sizes.tolist() == [
            sum(shard_of[i] == shard for i in ids) for shard in read
        ]
        if ids:
            for asked in (ids, ids[::-1], ids[-1:]):  # by a table of all codes, or one by one
                ranks, shards = storage.of(np.array(asked))
                assert ranks.tolist() == [ids.index(i) for i in asked]
                assert shards.tolist() == [read.index(shard_of[i]) for i in asked]
        firsts = [min(i for i in ids if shard_of[i] == shard) for shard in read]
        assert storage.first_codes.tolist() == firsts
        assert storage.read_sizes.tolist() == [
            sum(shard_of[i] == shard for start, stop in bounds for i in range(start, stop))
            for shard in read
        ]

    check_cases(_cases(), check, 60)


def _order_of(dataset: Dataset, spec: str, **settings: Any) -> Order:
    return plan_order(dataset, spec, ReadSettings(**settings)).order


def test_orders_that_read_the_same_have_their_storage_made_once() -> None:
    splits = [Split(name=name, shard_lengths=(4, 2, 5)) for name in ("train", "test")]
    dataset = Dataset(name="d", splits=tuple(splits))
    made = storage_order(_order_of(dataset, "train"))
    for settings in ({"shuffle_seed": 3}, {"cycle": 2}, {"buffer": 3, "buffer_seed": 1}):
        assert storage_order(_order_of(dataset, "train", **settings)) is made
    host = Host(index=1, count=2)
    assert storage_order(_order_of(dataset, "train", host=host, host_by="examples")) is made
    others = [
        storage_order(order)
        for order in (
            _order_of(dataset, "test"),
            _order_of(dataset, "train[1:]"),
            _order_of(dataset, "train[:10]"),
            _order_of(dataset, "train+test"),
            _order_of(dataset, "train+train"),
            _order_of(dataset, "train", host=host, host_by="files"),
            _order_of(Dataset(name="d", splits=tuple(splits)), "train"),
        )
    ]
    assert len({*map(id, others), id(made)}) == len(others) + 1


def test_places_in_storage_are_those_of_the_order_whatever_is_in_use() -> None:
    random = Random(6)
    in_use: list[tuple[Dataset, StorageOrder]] = []
    for case in range(60):
        lengths = random.choice(((4, 2, 5), (4, 3, 4), (5, 2, 4), (11,)))
        split = Split(name="train", shard_lengths=lengths)
        dataset = (
            random.choice(in_use)[0] if in_use and case % 2 else Dataset(name="d", splits=(split,))
        )
        spec = random.choice(("train", "train[2:]", "train[:9]", "train[3:]+train[:4]"))
        order = _order_of(dataset, spec, reverse=random.random() < 0.3)
        found, own = storage_order(order), StorageOrder([order.reads_of_epoch], order.codes)
        codes = order.codes_at(np.arange(order.num_examples))
        assert [x.tolist() for x in found.of(codes)] == [x.tolist() for x in own.of(codes)], case
        assert found.shard_sizes.tolist() == own.shard_sizes.tolist(), case
        assert (found.num_ranks, found.num_read) == (own.num_ranks, own.num_read), case
        in_use.append((dataset, found))
