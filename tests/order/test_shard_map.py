"""Places in storage over an epoch, visits of slots, groups of values: against counting by hand."""

from __future__ import annotations

import time
from itertools import pairwise
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
from shardctl.order.shard_map import Visit, buckets, strips
from shardctl.verbs.quality.picture import places
from tests.cases import check_cases
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


# How far into storage each example lies.


@pytest.mark.long
def test_each_example_of_the_epoch_is_where_it_is_stored() -> None:
    def check(order: Order) -> None:
        ranks, num_ranks = places(order, sample_epoch(order))
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
    order = order_of(lengths=(10**9,) * 1000, cycle=1)
    ranks, num_ranks = places(order, sample_epoch(order))
    assert len(ranks) > 10_000
    # One after the other as stored, so that the place is the position: one in each equal part.
    assert np.array_equal(ranks * len(ranks) // num_ranks, np.arange(len(ranks)))
    # 16 slots in turn, 16 examples each: at equal distances of 256 all would be of one slot.
    order = order_of(lengths=(2**20,) * 16, cycle=16, block=16)
    ranks, num_ranks = places(order, sample_epoch(order))
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
        assert (found.start, found.stop) == (start, end)

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
        sizes = [group.last + 1 - group.first for group in found]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        for group in found:
            own = values[group.first : group.last + 1]
            assert (group.min, group.max) == (min(own), max(own))
            assert type(group.max) is type(values[0])

    numbers = st.lists(st.integers(-(10**15), 10**15), max_size=60)
    parts = st.lists(st.floats(-10, 10), max_size=60)
    check_cases(st.tuples(numbers | parts, st.integers(1, 70)), check, 100)


def test_numbers_beyond_64_bits() -> None:
    (found,) = buckets([2**63, 1, 2**70], 1)
    assert (found.min, found.max) == (1, 2**70)
