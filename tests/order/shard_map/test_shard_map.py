"""Shards over an epoch: against its examples counted one by one."""

from __future__ import annotations

import time
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.order import shard_map as module
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.sample import sample_epoch
from shardctl.order.shard_map import ShardMap, shard_map
from tests.cases import check_cases, in_this_run
from tests.order.shard_map.picture_orders import dataset_of, epoch_of, orders, storage_of

Place = tuple[int, int]  # index of a split, shard


def _places_of(order: Order) -> list[Place]:
    names = [split.name for split in order.dataset.splits]
    return [(names.index(split), shard) for split, shard, _ in epoch_of(order)]


def _groups(order: Order, found: ShardMap, shards: list[Place]) -> list[list[Place]]:
    """Return the shards of each row, which follow each other in storage, by its label."""
    ends = []
    names = {split.name: index for index, split in enumerate(order.dataset.splits)}
    for row, label in zip(found.rows, found.labels, strict=True):
        if order.codes.several_splits:
            name, _, numbers = label.partition(":")
            first, _, last = numbers.partition("-")
            other, _, last = last.rpartition(":")
            ends.append(((names[name], int(first)), (names[other or name], int(last or first))))
        else:
            first, _, last = label.partition("-")
            split = shards[0][0]
            ends.append(((split, int(first)), (split, int(last or first))))
        assert row == (ends[-1][0][1], ends[-1][1][1])
    return [[shard for shard in shards if first <= shard <= last] for first, last in ends]


def _check_rows(order: Order, found: ShardMap, shards: list[Place], most: int) -> list[list[Place]]:
    groups = _groups(order, found, shards)
    assert [shard for group in groups for shard in group] == shards
    splits = {split for split, _ in shards}
    assert len(groups) <= max(most, 1)
    if len(shards) <= most:
        assert all(len(group) == 1 for group in groups)
    if len(splits) <= most:
        assert all(len({split for split, _ in group}) == 1 for group in groups)
        for _, own in groupby(groups, lambda group: group[0][0]):
            sizes = [len(group) for group in own]
            assert max(sizes) - min(sizes) <= 1
    return groups


def _check_columns(found: ShardMap, size: int, most: int) -> None:
    assert len(found.columns) == min(size, most)
    assert found.num_positions == size
    if size:
        assert found.columns[0][0] == 0
        assert found.columns[-1][1] == size
    assert all(one[1] == other[0] for one, other in pairwise(found.columns))
    widths = [stop - start for start, stop in found.columns]
    assert max(widths, default=0) - min(widths, default=0) <= 1


def _counted(places: list[Place], found: ShardMap, groups: list[list[Place]]) -> list[list[int]]:
    return [
        [sum(place in group for place in places[start:stop]) for start, stop in found.columns]
        for group in groups
    ]


@pytest.mark.long
def test_counts_are_those_of_the_examples_one_by_one() -> None:
    def check(case: tuple[Order, int, int, bool]) -> None:
        order, rows, columns, measured = case
        sample = sample_epoch(order) if measured else None
        found = shard_map(order, sample, rows=rows, columns=columns)
        places = _places_of(order)
        _check_columns(found, len(places), columns)
        shards = sorted(set(places))
        groups = _check_rows(order, found, shards, rows)
        assert found.counts.tolist() == _counted(places, found, groups)
        assert found.measured.tolist() == [stop - start for start, stop in found.columns]
        assert found.num_shards == len(shards)
        assert found.sampled is None
        for part, group in zip(found.expected.tolist(), groups, strict=True):
            assert part == pytest.approx(sum(place in group for place in places) / len(places))

    sizes = st.sampled_from([1, 2, 5, 48])
    check_cases(st.tuples(orders(), sizes, sizes, st.booleans()), check, 120)


@pytest.mark.long
def test_a_long_epoch_is_looked_up_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many looked up as there are, each position is looked up once."""
    monkeypatch.setattr(module, "COMPLETE_LIMIT", -1)

    def check(case: tuple[Order, int, int]) -> int:
        order, rows, columns = case
        places = _places_of(order)
        if not places or len(places) % min(columns, len(places)) or order.num_buffered is not None:
            return 0
        monkeypatch.setattr(module, "_LOOKED_UP", len(places))
        found = shard_map(order, rows=rows, columns=columns)
        storage = [_shard_of(order, place) for place in storage_of(order)]
        shards = sorted(set(storage))
        groups = _check_rows(order, found, shards, rows)
        assert found.counts.tolist() == _counted(places, found, groups)
        assert found.sampled is not None
        assert found.sampled.num_examples == len(places)
        for part, group in zip(found.expected.tolist(), groups, strict=True):
            assert part == pytest.approx(sum(place in group for place in storage) / len(storage))
        return 1

    sizes = st.sampled_from([1, 2, 5, 48])
    assert check_cases(st.tuples(orders(), sizes, sizes), check, 130) > in_this_run(130) // 5


def _shard_of(order: Order, place: tuple[int, int]) -> Place:
    split, left = place
    for shard, length in enumerate(order.dataset.splits[split].shard_lengths):
        if left < length:
            return split, shard
        left -= length
    raise AssertionError(place)


@pytest.mark.long
def test_a_trillion_examples_in_the_order_of_storage_are_a_diagonal() -> None:
    data = dataset_of(train=(10**6,) * 10**6)
    begin = time.process_time()
    found = shard_map(plan_order(data, "train", {"cycle": 1}).order)
    assert time.process_time() - begin < 5
    assert (found.num_shards, found.num_positions) == (10**6, 10**12)
    assert found.counts.shape == (48, 96)
    # A column is half a row; of a shard at the edge of a row a part is in the next column.
    for column in range(96):
        others = np.delete(found.counts[:, column], column // 2)
        assert others.sum() <= 1
    assert found.measured.tolist() == [(1 << 18) // 96] * 96
    assert found.expected.tolist() == pytest.approx([1 / 48] * 48, rel=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"buffer": -2, "buffer_seed": 1},
        {"loader": "grain", "shuffle_seed": 1},
        {"shuffle_seed": 1, "cycle": 16},
    ],
)
def test_an_even_grey_is_a_uniform_permutation(settings: dict[str, Any]) -> None:
    data = dataset_of(train=(3000,) * 3000)
    found = shard_map(plan_order(data, "train", settings).order)
    assert found.sampled is not None
    expected = found.expected[:, None] * found.measured
    deviations = (found.counts - expected) / np.sqrt(expected)
    # A column has 31 files whole, of 48 groups: far from even, and so it is shown.
    assert (np.abs(deviations).max() < 6) == ("cycle" not in settings)
    assert np.abs(deviations.mean()) < 0.1


def test_a_drawn_buffer_shows_what_the_replayed_one_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset_of(train=(500,) * 200)
    order = plan_order(data, "train", {"cycle": 4, "buffer": 20_000, "buffer_seed": 1}).order
    exact = shard_map(order, rows=20, columns=20)
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 1)
    monkeypatch.setattr(module, "_LOOKED_UP", 50_000)
    drawn = shard_map(order, rows=20, columns=20)
    assert exact.sampled is None
    assert drawn.sampled is not None
    assert drawn.sampled.buffer_drawn
    one = exact.counts / exact.measured
    other = drawn.counts / drawn.measured
    # 2,500 positions a column: five standard errors of a part, of both.
    assert np.abs(one - other).max() < 5 * np.sqrt(0.25 / 2500)
    assert np.abs(one - other).mean() < 0.01


def test_a_sample_of_stretches_is_not_counted() -> None:
    order = plan_order(dataset_of(train=(100,) * 500), "train", {"shuffle_seed": 1}).order
    sample = sample_epoch(order, limit=1000, num_measured=5000)
    assert not sample.complete
    assert np.array_equal(shard_map(order, sample).counts, shard_map(order).counts)
    assert shard_map(order, sample).sampled is None


def test_examples_read_twice_are_expected_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 1)
    monkeypatch.setattr(module, "_LOOKED_UP", 300)
    order = plan_order(dataset_of(train=(100, 100, 100)), "train+train[:1shard]").order
    assert shard_map(order).expected.tolist() == pytest.approx([0.5, 0.25, 0.25])


def test_shards_are_called_as_their_files_are() -> None:
    data = dataset_of(train=(10,) * 100, test=(10,) * 4)
    found = shard_map(plan_order(data, "train[50%:]").order, rows=5)
    assert found.labels == ("50-59", "60-69", "70-79", "80-89", "90-99")
    found = shard_map(plan_order(data, "test+train[50%:]").order, rows=6)
    of_train = ("train:50-61", "train:62-74", "train:75-86", "train:87-99")
    assert found.labels == (*of_train, "test:0-3")
    found = shard_map(plan_order(data, "test+train[50%:]").order, rows=1)
    assert found.labels == ("train:50-test:3",)


def test_one_example_and_none() -> None:
    found = shard_map(plan_order(dataset_of(train=(1,)), "train").order)
    assert (found.rows, found.columns, found.counts.tolist()) == (((0, 0),), ((0, 1),), [[1]])
    none = shard_map(
        plan_order(dataset_of(train=(3,)), "train", {"batch": 5, "drop_remainder": True}).order
    )
    assert (none.rows, none.columns, none.counts.shape) == ((), (), (0, 0))
