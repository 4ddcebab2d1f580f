"""Visits: against an interleave that is played slot by slot, and positions asked one by one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.order import shard_map as module
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.shard_map import Visit, strips
from tests.cases import check_cases
from tests.order.shard_map.picture_orders import dataset_of, examples, orders
from tests.strategies import shard_lengths


def _one_by_one(order: Order, start: int, stop: int) -> list[Visit]:
    """Return the visits of positions, each asked for by itself."""
    found: list[Visit] = []
    last: tuple[object, ...] = ()
    for position in range(start, stop):
        split, shard, number = examples(order, position, position + 1)[0]
        here = np.array([position])
        epoch = int(order.epoch_of(here)[0])
        slot = block = None
        if isinstance(order, ReaderOrder) and order.has_blocks:
            (slot,), (offset,) = (array.tolist() for array in order.blocks_at(here))
            block = offset // order.settings.block
        mine = (split, shard, epoch, slot, block)
        before = found[-1] if found else None
        if before is not None and mine == last and (slot is None or number > before.last_id):
            found[-1] = Visit(
                position=before.position,
                epoch=epoch,
                slot=slot,
                split=split,
                shard=shard,
                first_id=before.first_id,
                last_id=number,
                count=before.count + 1,
                is_run=before.is_run and number == before.last_id + 1,
            )
        else:
            found.append(
                Visit(
                    position=position,
                    epoch=epoch,
                    slot=slot,
                    split=split,
                    shard=shard,
                    first_id=number,
                    last_id=number,
                    count=1,
                    is_run=True,
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
        found = strips(order, start, stop, most=most)
        expected = _one_by_one(order, start, stop)
        assert list(found.visits) == expected[:most]
        assert found.is_cut == (len(expected) > most)
        assert found.start == start
        assert found.stop == (expected[most].position if found.is_cut else stop)
        assert found.has_slots == order.has_blocks

    numbers = st.integers(0, 40)
    check_cases(st.tuples(orders(), numbers, numbers, st.sampled_from([1, 3, 100])), check, 80)


def _played(lengths: tuple[int, ...], cycle: int, block: int) -> list[tuple[int, int, int, int]]:
    """Return (slot, shard, first id, count) of each visit, of slots that are lists."""
    firsts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    waiting = [
        (shard, list(range(firsts[shard], firsts[shard + 1]))) for shard in range(len(lengths))
    ]
    slots: list[tuple[int, list[int]] | None] = [None] * cycle
    found = []
    at = 0
    while waiting or any(slots):
        if slots[at] is None and waiting:
            slots[at] = waiting.pop(0)
        held = slots[at]
        if held is not None:
            shard, ids = held
            taken, left = ids[:block], ids[block:]
            if taken:
                found.append((at, shard, taken[0], len(taken)))
            # A slot knows that its file has ended once it finds less than a block, if only nothing;
            # the next file is opened in its next turn.
            slots[at] = None if len(taken) < block else (shard, left)
        at = (at + 1) % cycle
    return found


def test_visits_are_the_turns_of_slots() -> None:
    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, cycle, block = case
        # Empty files are not read at all.
        kept = tuple(length for length in lengths if length)
        number = [shard for shard, length in enumerate(lengths) if length]
        order = plan_order(
            dataset_of(train=lengths), "train", {"cycle": cycle, "block": block}
        ).order
        found = strips(order, 0, order.num_examples, most=1000).visits
        played = [(a, number[b], c, d) for a, b, c, d in _played(kept, cycle, block)]
        assert [(v.slot, v.shard, v.first_id, v.count) for v in found] == played

    lengths = shard_lengths(8, 12).filter(any)
    check_cases(st.tuples(lengths, st.integers(1, 5), st.integers(1, 5)), check, 100)


def test_a_file_that_is_read_twice_is_two_visits() -> None:
    order = plan_order(dataset_of(train=(4,)), "train[:1]+train[:1]", {"cycle": 1}).order
    assert [visit.count for visit in strips(order, 0, 2).visits] == [1, 1]


@pytest.mark.long
def test_a_long_order_is_looked_at_no_further_than_needed() -> None:
    data = dataset_of(train=(10**6,) * 10**5)
    order = plan_order(data, "train", {"block": 10**5, "cycle": 2}).order
    begin = time.process_time()
    found = strips(order, 10**10, 10**11, most=3)
    assert time.process_time() - begin < 3
    assert found.is_cut
    assert [visit.count for visit in found.visits] == [10**5] * 3
    assert all(visit.is_run for visit in found.visits)
    assert found.stop == 10**10 + 3 * 10**5


def test_more_positions_than_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_READ", 10)
    monkeypatch.setattr(module, "_MOST_READ", 40)
    order = plan_order(dataset_of(train=(1000,)), "train", {"block": 500}).order
    found = strips(order, 0, 1000)
    assert found.is_cut
    assert (found.start, found.stop) == (0, 40)
    assert found.visits[0].count == 40


def test_positions_that_are_not_there_are_refused() -> None:
    order = plan_order(dataset_of(train=(5,)), "train").order
    with pytest.raises(UsageError, match="5 examples"):
        strips(order, 3, 7)
    assert strips(order, 5, 5).visits == ()
