"""Shards over an epoch, visits of slots, groups of values: against counting one by one."""

from __future__ import annotations

import time
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError, UsageError
from shardctl.order import shard_map as module
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.sample import sample_epoch
from shardctl.order.shard_map import ShardMap, Visit, buckets, shard_map, strips
from shardctl.verbs.quality.picture import places
from tests.cases import check_cases, in_this_run
from tests.order.order_cases import read_settings
from tests.strategies import shard_lengths

_SPECS = ["train", "train", "train[20%:80%]", "train[1:-1]", "test+train", "train+test[50%:]+other"]
_SPECS += ["train[:70%]+train[30%:]", "train[:1]+train[:1]"]
_STAGES = [
    "read(train) | shuffle(3, seed=7)",
    "read(train) | repeat(2) | shuffle(5, seed=1) | batch(3)",
    "read(train) | repeat | shuffle(5, seed=1)",
    "read(test+train, shuffle_seed=3) | take(7)",
    "read(train[20%:]) | skip(2) | repeat(2)",
    "sample_from_datasets(read(train), read(test), weights=[0.7, 0.3], seed=1) | take(9)",
    "choose_from_datasets([train, test], choices=range(2) | repeat(3)) | batch(2)",
]
_LOADERS: list[dict[str, Any]] = [
    {"loader": "torch", "shuffle": True, "shuffle_seed": 1},
    {"loader": "torch", "shuffle": False, "host": "1/3"},
    {"loader": "grain", "shuffle_seed": 3, "host": "0/2"},
    {"loader": "grain", "batch": 3, "epochs": 2},
    {"loader": "hf", "shuffle_seed": 3, "epochs": 2},
    {"loader": "hf", "streaming": True, "buffer": 4, "shuffle_seed": 3},
]
Place = tuple[int, int]  # index of a split, and a shard or an id


def dataset_of(**lengths: tuple[int, ...]) -> Dataset:
    splits = (Split(name=name, shard_lengths=shards) for name, shards in lengths.items())
    return Dataset(name="d", splits=tuple(splits))


def order_of(spec: str = "train", /, lengths: tuple[int, ...] = (), **settings: Any) -> Order:
    return plan_order(dataset_of(train=lengths), spec, settings).order


@st.composite
def orders(draw: st.DrawFn) -> Order:
    """Orders of TFDS's reader, of stages and of other loaders, of a few shards."""
    names = ("test", "train", "other")
    dataset = dataset_of(**{name: draw(shard_lengths(12, 20)) for name in names})
    spec: str | None = draw(st.sampled_from(_SPECS))
    settings: Any = draw(read_settings() | st.sampled_from(_LOADERS) | st.sampled_from(_STAGES))
    if isinstance(settings, str):
        spec, settings = None, {"stages": settings}
    try:
        return plan_order(dataset, spec, settings).order
    except ShardctlError:
        assume(False)
        raise


def examples(order: Order, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return (split, shard, id) at each of the positions, by counting through the shards."""
    found = []
    names = {split.name: index for index, split in enumerate(order.dataset.splits)}
    for code in order.read(start, stop).tolist():
        name, _, number = order.codes.names([code])[0].rpartition(":")
        split = names[name if order.codes.several_splits else order.ranges[0].split.name]
        found.append((split, _shard_of(order, (split, int(number))), int(number)))
    return found


def _shard_of(order: Order, place: Place) -> int:
    split, left = place
    for shard, length in enumerate(order.dataset.splits[split].shard_lengths):
        if left < length:
            return shard
        left -= length
    raise AssertionError(place)


def epoch_of(order: Order) -> list[tuple[int, int, int]]:
    return examples(order, 0, min(order.epoch_size, order.num_examples))


def storage_of(order: Order) -> list[Place]:
    """Return (split, id) of all that is read of an epoch, as often as it is read."""
    reads = order.reads_of_epoch
    rows = zip(reads.split.tolist(), reads.first.tolist(), reads.take.tolist(), strict=True)
    return [(split, number) for split, first, take in rows for number in range(first, first + take)]


# Shards over an epoch.


def _groups(order: Order, found: ShardMap, shards: list[Place], most: int) -> list[list[Place]]:
    """Return the shards of each row, which follow each other in storage, by its label."""
    ends, names = [], {split.name: index for index, split in enumerate(order.dataset.splits)}
    several = order.codes.several_splits
    for row, label in zip(found.rows, found.labels, strict=True):
        alone = "" if several else f"{order.dataset.splits[shards[0][0]].name}:"
        name, _, numbers = f"{alone}{label}".partition(":")
        first, _, last = numbers.partition("-")
        other, _, last = last.rpartition(":")
        ends.append(((names[name], int(first)), (names[other or name], int(last or first))))
        assert row == (ends[-1][0][1], ends[-1][1][1])
    groups = [[shard for shard in shards if first <= shard <= last] for first, last in ends]
    assert [shard for group in groups for shard in group] == shards
    assert len(groups) <= max(most, 1)
    if len(shards) <= most:
        assert all(len(group) == 1 for group in groups)
    if len({split for split, _ in shards}) <= most:
        assert all(len({split for split, _ in group}) == 1 for group in groups)
        for _, own in groupby(groups, lambda group: group[0][0]):
            sizes = [len(group) for group in own]
            assert max(sizes) - min(sizes) <= 1
    return groups


def _counted(places: list[Place], found: ShardMap, groups: list[list[Place]]) -> list[list[int]]:
    edges = [0, *(stop for _, stop in found.columns)]
    assert list(found.columns) == list(pairwise(edges))
    assert (edges[-1], found.num_positions) == (len(places), len(places))
    widths = np.diff(edges)
    assert widths.max(initial=0) - widths.min(initial=1 << 40) <= 1
    return [
        [sum(place in group for place in places[start:stop]) for start, stop in found.columns]
        for group in groups
    ]


@pytest.mark.long
@pytest.mark.parametrize("is_long", [False, True])
def test_counts_are_those_of_the_examples_one_by_one(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long epoch, with as many looked up as there are, each position is looked up once."""
    if is_long:
        monkeypatch.setattr(module, "COMPLETE_LIMIT", -1)

    def check(case: tuple[Order, int, int, bool]) -> int:
        order, rows, columns, measured = case
        places = [(split, shard) for split, shard, _ in epoch_of(order)]
        among = places
        if is_long:
            whole = len(places) and not len(places) % min(columns, len(places))
            if not whole or order.num_buffered is not None:
                return 0
            monkeypatch.setattr(module, "_LOOKED_UP", len(places))
            among = [(place[0], _shard_of(order, place)) for place in storage_of(order)]
        sample = sample_epoch(order) if measured and not is_long else None
        found = shard_map(order, sample, rows=rows, columns=columns)
        groups = _groups(order, found, sorted(set(among)), rows)
        assert len(found.columns) == min(len(places), columns)
        assert found.counts.tolist() == _counted(places, found, groups)
        assert found.measured.tolist() == [stop - start for start, stop in found.columns]
        assert found.num_shards == len(set(among))
        assert (found.sampled and found.sampled.num_examples) == (len(places) if is_long else None)
        for part, group in zip(found.expected.tolist(), groups, strict=True):
            assert part == pytest.approx(sum(place in group for place in among) / len(among))
        return 1

    sizes = st.sampled_from([1, 2, 5, 48])
    count = check_cases(st.tuples(orders(), sizes, sizes, st.booleans()), check, 100)
    assert count > in_this_run(100) // 5


@pytest.mark.long
def test_a_trillion_examples_in_the_order_of_storage_are_a_diagonal() -> None:
    begin = time.process_time()
    found = shard_map(order_of(lengths=(10**6,) * 10**6, cycle=1))
    assert time.process_time() - begin < 5
    assert (found.num_shards, found.num_positions) == (10**6, 10**12)
    assert found.counts.shape == (48, 96)
    # A column is half a row; of a shard at the edge of a row a part is in the next column.
    for column in range(96):
        assert np.delete(found.counts[:, column], column // 2).sum() <= 1
    assert found.measured.tolist() == [(1 << 18) // 96] * 96
    assert found.expected.tolist() == pytest.approx([1 / 48] * 48, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "is_even"),
    [
        ({"buffer": -2, "buffer_seed": 1}, True),
        ({"loader": "grain", "shuffle_seed": 1}, True),
        ({"shuffle_seed": 1, "cycle": 16}, False),  # a column has 31 files whole, of 48 groups
    ],
)
def test_an_even_grey_is_a_uniform_permutation(settings: dict[str, Any], is_even: bool) -> None:
    found = shard_map(order_of(lengths=(3000,) * 3000, **settings))
    assert found.sampled is not None
    expected = found.expected[:, None] * found.measured
    deviations = (found.counts - expected) / np.sqrt(expected)
    assert (np.abs(deviations).max() < 6) == is_even
    assert np.abs(deviations.mean()) < 0.1


def test_a_drawn_buffer_shows_what_the_replayed_one_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    order = order_of(lengths=(500,) * 200, cycle=4, buffer=20_000, buffer_seed=1)
    exact = shard_map(order, rows=20, columns=20)
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 1)
    monkeypatch.setattr(module, "_LOOKED_UP", 50_000)
    drawn = shard_map(order, rows=20, columns=20)
    assert exact.sampled is None
    assert drawn.sampled is not None
    assert drawn.sampled.buffer_drawn
    apart = np.abs(exact.counts / exact.measured - drawn.counts / drawn.measured)
    # 2,500 positions a column: five standard errors of a part, of both.
    assert apart.max() < 5 * np.sqrt(0.25 / 2500)
    assert apart.mean() < 0.01


def test_what_is_counted_expected_and_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    order = order_of(lengths=(100,) * 500, shuffle_seed=1)
    sample = sample_epoch(order, limit=1000, num_measured=5000)  # stretches are not counted
    assert np.array_equal(shard_map(order, sample).counts, shard_map(order).counts)
    data = dataset_of(train=(10,) * 100, test=(10,) * 4)
    of_train = ("train:50-61", "train:62-74", "train:75-86", "train:87-99")
    for spec, rows, labels in (
        ("train[50%:]", 5, ("50-59", "60-69", "70-79", "80-89", "90-99")),
        ("test+train[50%:]", 6, (*of_train, "test:0-3")),
        ("test+train[50%:]", 1, ("train:50-test:3",)),
    ):
        assert shard_map(plan_order(data, spec).order, rows=rows).labels == labels
    found = shard_map(order_of(lengths=(1,)))
    assert (found.rows, found.columns, found.counts.tolist()) == (((0, 0),), ((0, 1),), [[1]])
    none = shard_map(order_of(lengths=(3,), batch=5, drop_remainder=True))
    assert (none.rows, none.columns, none.counts.shape) == ((), (), (0, 0))
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 1)
    monkeypatch.setattr(module, "_LOOKED_UP", 300)
    twice = shard_map(order_of("train+train[:1shard]", lengths=(100, 100, 100)))
    assert twice.expected.tolist() == pytest.approx([0.5, 0.25, 0.25])


# How far into storage each example lies.


@pytest.mark.long
def test_each_example_of_the_epoch_is_where_it_is_stored() -> None:
    def check(order: Order) -> None:
        ranks, num_ranks = places(order)
        stored = [(split, number) for split, _, number in epoch_of(order)]
        among = storage_of(order)
        if len(among) != len(stored) or len(set(among)) != len(stored):
            among = stored  # some are left out or come twice: then it is among those that come
        assert (len(ranks), num_ranks) == (len(stored), len(stored))
        for at, rank in enumerate(ranks.tolist()):
            before = sum(other < stored[at] for other in among)
            assert before <= rank < before + among.count(stored[at])

    check_cases(orders(), check, 60)


def test_of_a_long_epoch_single_positions_are_looked_up_all_over_it() -> None:
    ranks, num_ranks = places(order_of(lengths=(10**9,) * 1000, cycle=1))
    assert len(ranks) > 10_000
    # One after the other as stored, so that the place is the position: one in each equal part.
    assert np.array_equal(ranks * len(ranks) // num_ranks, np.arange(len(ranks)))
    # 16 slots in turn, 16 examples each: at equal distances of 256 all would be of one slot.
    ranks, num_ranks = places(order_of(lengths=(2**20,) * 16, cycle=16, block=16))
    slots = np.bincount(ranks * 16 // num_ranks, minlength=16)
    assert slots / len(ranks) == pytest.approx(1 / 16, rel=0.1)


# Visits.


def _one_by_one(order: Order, start: int, stop: int) -> list[Visit]:
    """Return the visits of positions, each asked for by itself."""
    found: list[Visit] = []
    last: tuple[object, ...] = ()
    for position in range(start, stop):
        split, shard, number = examples(order, position, position + 1)[0]
        epoch = int(order.epoch_of([position])[0])
        slot = block = None
        if (visit := order.blocks_at([position])) is not None:
            slot, block = int(visit[0][0]), int(visit[1][0]) // order.settings.block
        mine = (split, shard, epoch, slot, block)
        before = found.pop() if found else None
        goes_on = before is not None and mine == last
        if before is not None and not (goes_on and (slot is None or number > before.last_id)):
            found.append(before)
            before = None
        found.append(
            Visit(
                position=position if before is None else before.position,
                epoch=epoch,
                slot=slot,
                split=order.dataset.splits[split].name,
                shard=shard,
                first_id=number if before is None else before.first_id,
                last_id=number,
                count=1 + (0 if before is None else before.count),
                is_run=before is None or (before.is_run and number == before.last_id + 1),
            )
        )
        last = mine
    return found


@pytest.mark.long
def test_visits_are_those_of_positions_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_READ", 3)  # so that more is read again and again

    def check(case: tuple[Order, int, int, int]) -> None:
        order, start, count, most = case
        start = min(start, order.num_examples)
        stop = min(start + count, order.num_examples)
        found, expected = strips(order, start, stop, most=most), _one_by_one(order, start, stop)
        assert list(found.visits) == expected[:most]
        assert found.is_cut == (len(expected) > most)
        end = expected[most].position if found.is_cut else stop
        assert (found.start, found.stop, found.has_slots) == (start, end, order.has_blocks)

    numbers = st.integers(0, 40)
    check_cases(st.tuples(orders(), numbers, numbers, st.sampled_from([1, 3, 100])), check, 80)


def _played(lengths: tuple[int, ...], cycle: int, block: int) -> list[tuple[int, int, int, int]]:
    """Return (slot, shard, first id, count) of each visit, of slots that are lists."""
    firsts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    ids = [list(range(first, last)) for first, last in pairwise(firsts)]
    waiting = [(shard, ids[shard]) for shard, length in enumerate(lengths) if length]
    slots: list[tuple[int, list[int]] | None] = [None] * cycle
    found, at = [], 0
    while waiting or any(slots):
        if slots[at] is None and waiting:
            slots[at] = waiting.pop(0)
        if (held := slots[at]) is not None:
            taken, left = held[1][:block], held[1][block:]
            if taken:
                found.append((at, held[0], taken[0], len(taken)))
            # A slot knows that its file has ended once it finds less than a block, if only nothing;
            # the next file is opened in its next turn.
            slots[at] = None if len(taken) < block else (held[0], left)
        at = (at + 1) % cycle
    return found


def test_visits_are_the_turns_of_slots() -> None:
    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, cycle, block = case
        order = order_of(lengths=lengths, cycle=cycle, block=block)
        visits = strips(order, 0, order.num_examples, most=1000).visits
        found = [(v.slot, v.shard, v.first_id, v.count) for v in visits]
        assert found == _played(lengths, cycle, block)

    lengths = shard_lengths(8, 12).filter(any)
    check_cases(st.tuples(lengths, st.integers(1, 5), st.integers(1, 5)), check, 60)
    twice = order_of("train[:1]+train[:1]", lengths=(4,), cycle=1)
    assert [visit.count for visit in strips(twice, 0, 2).visits] == [1, 1]


@pytest.mark.long
def test_an_order_is_looked_at_no_further_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    order = order_of(lengths=(10**6,) * 10**5, block=10**5, cycle=2)
    begin = time.process_time()
    found = strips(order, 10**10, 10**11, most=3)
    assert time.process_time() - begin < 3
    assert (found.is_cut, found.stop) == (True, 10**10 + 3 * 10**5)
    assert [(visit.count, visit.is_run) for visit in found.visits] == [(10**5, True)] * 3
    monkeypatch.setattr(module, "_FIRST_READ", 10)
    monkeypatch.setattr(module, "_MOST_READ", 40)
    found = strips(order_of(lengths=(1000,), block=500), 0, 1000)
    assert (found.is_cut, found.start, found.stop, found.visits[0].count) == (True, 0, 40, 40)
    order = order_of(lengths=(5,))
    with pytest.raises(UsageError, match="5 examples"):
        strips(order, 3, 7)
    assert strips(order, 5, 5).visits == ()


# Groups of values.


def test_groups_hold_each_value_once_and_differ_by_one_at_most() -> None:
    def check(case: tuple[list[int] | list[float], int]) -> None:
        values, most = case
        found = buckets(values, most)
        assert len(found) == min(most, len(values))
        together = [index for group in found for index in range(group.first, group.last + 1)]
        assert together == list(range(len(values)))
        sizes = [group.count for group in found]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        for group in found:
            own = values[group.first : group.last + 1]
            assert (group.count, group.min, group.max) == (len(own), min(own), max(own))
            assert type(group.max) is type(values[0])
            assert abs(group.mean - sum(own) / len(own)) <= 1e-9 * max(1, abs(sum(own)))
            assert group.argmax == group.first + [*own].index(max(own))

    numbers = st.lists(st.integers(-(10**15), 10**15), max_size=60)
    parts = st.lists(st.floats(-10, 10), max_size=60)
    check_cases(st.tuples(numbers | parts, st.integers(1, 70)), check, 100)


def test_sums_beyond_64_bits() -> None:
    (found,) = buckets(np.full(10, 2**62), 1)
    assert (found.mean, found.max) == (2.0**62, 2**62)
    (found,) = buckets([2**63, 1, 2**70], 1)
    assert (found.min, found.max, found.argmax) == (1, 2**70, 2)
