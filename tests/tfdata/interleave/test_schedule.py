"""When and where shards open, and which visit yields a position."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given

from shardctl.errors import UsageError
from shardctl.tfdata.interleave import Interleave
from shardctl.tfdata.schedule import Schedule, build_schedule
from tests.tfdata.interleave.interleave_cases import Case, cases


def schedule_of(case: Case) -> Schedule:
    return build_schedule(np.array(case.lengths, np.int64), case.cycle_length, case.block_length)


def visits_by_hand(case: Case) -> list[tuple[int, int, int]]:
    """Return (round, slot, examples yielded) of each visit to an open slot, by playing it."""
    waiting = deque(case.lengths)
    slots: list[int | None] = [None] * case.cycle_length
    visits, turn = [], 0
    while waiting or any(left is not None for left in slots):
        for slot in range(case.cycle_length):
            if slots[slot] is None and waiting:
                slots[slot] = waiting.popleft()
            if (left := slots[slot]) is not None:
                visits.append((turn, slot, min(left, case.block_length)))
                # A shard whose last block was full is found empty by a visit of its own.
                slots[slot] = None if left < case.block_length else left - case.block_length
        turn += 1
    return visits


@given(cases().filter(lambda case: case.lengths and case.num_examples < 200))
def test_visits_and_positions_are_those_of_the_machine_played_by_hand(case: Case) -> None:
    schedule, visits = schedule_of(case), visits_by_hand(case)
    yielded = [count for _, _, count in visits]
    assert schedule.num_examples == sum(yielded) == case.num_examples
    assert schedule.positions_of(np.arange(len(visits))).tolist() == [
        sum(yielded[:visit]) for visit in range(len(visits))
    ]
    found = schedule.visits_at(np.arange(case.num_examples))
    assert list(zip(*(x.tolist() for x in found), strict=True)) == [
        (visit, offset) for visit, count in enumerate(yielded) for offset in range(count)
    ]
    rounds, slots = schedule.rounds.places(np.arange(len(visits)))
    assert list(zip(rounds.tolist(), slots.tolist(), strict=True)) == [v[:2] for v in visits]


@given(cases().filter(lambda case: len(case.lengths) > 0))
def test_an_occupant_is_the_last_shard_that_opened_in_its_slot(case: Case) -> None:
    schedule = schedule_of(case)
    opened = [divmod(key, schedule.cycle_length) for key in schedule.opening.tolist()]
    rounds, slots = (np.array(x) for x in zip(*opened, strict=True))
    shards, first_rounds = schedule.occupants(rounds, slots)
    assert shards.tolist() == list(range(len(opened)))
    assert first_rounds.tolist() == rounds.tolist()
    for shard, (_, slot) in enumerate(opened):
        before = [other for other in range(shard) if opened[other][1] == slot]
        assert not before or schedule.previous[shard] == before[-1]


def test_slots_beyond_16_bits_are_told_apart() -> None:
    lengths = tuple(number % 3 for number in range(65_900))
    case = Case(lengths=lengths, cycle_length=65_600, block_length=2)
    schedule, visits = schedule_of(case), visits_by_hand(case)
    rounds, slots = (np.array(column) for column in list(zip(*visits, strict=True))[:2])
    shards, _ = schedule.occupants(rounds, slots)
    # By hand: of three shards one has two visits, and those beyond come to the slots free first.
    number_of_visits = np.bincount(shards, minlength=len(lengths))
    assert number_of_visits.tolist() == [length // 2 + 1 for length in lengths]
    rounds, slots = np.divmod(schedule.opening[65_600:], 65_600)
    assert slots[:4].tolist() == [0, 1, 3, 4]
    assert rounds.tolist() == [1] * 300


def test_the_cycle_and_block_kept_are_those_that_matter() -> None:
    schedule = build_schedule(np.array([3, 5]), 1000, 2**40)
    assert (schedule.cycle_length, schedule.block_length) == (2, 6)
    assert build_schedule(np.array([], np.int64), 3, 2).cycle_length == 1


def test_the_opening_of_a_shard_cannot_be_written_to() -> None:
    schedule = build_schedule(np.array([3, 5]), 2, 2)
    with pytest.raises(ValueError, match="read-only"):
        schedule.opening[0] = 1


@pytest.mark.parametrize(
    ("lengths", "cycle", "block", "message"),
    [
        ([1], 0, 1, "cycle_length 0: at least 1 shard"),
        ([1], 1, 0, "block_length 0: a block has at least 1 example"),
        ([2, -1], 1, 1, "-1 examples: a shard's length is 0 or more"),
        ([2**62, 2**62], 1, 1, f"{2**63} examples: positions are 63-bit integers"),
        # Each shard needs room for a visit that yields nothing and for its key.
        ([2**63 - 3, 0], 1, 1, f"{2**63 - 3} examples: positions are 63-bit integers"),
    ],
)
def test_numbers_that_fix_no_order_are_refused(
    lengths: list[int], cycle: int, block: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build_schedule(np.array(lengths), cycle, block)


@pytest.mark.parametrize(
    ("lengths", "cycle_length", "first_round", "slot"),
    [
        pytest.param([], 3, [], [], id="no shards"),
        pytest.param([5, 0, 3], 1, [0, 3, 4], [0, 0, 0], id="one slot"),
        pytest.param([5, 0, 3], 7, [0, 0, 0], [0, 1, 2], id="more slots than shards"),
        pytest.param([1, 1, 1, 1], 2, [0, 0, 1, 1], [0, 1, 0, 1], id="short shards"),
        pytest.param([2, 1, 1, 1], 2, [0, 0, 1, 2], [0, 1, 1, 0], id="a full last block"),
        pytest.param([4, 0, 0, 0], 2, [0, 0, 1, 2], [0, 1, 1, 1], id="empty shards hold a visit"),
    ],
)
def test_a_shard_opens_in_the_slot_that_comes_free_first(
    lengths: list[int], cycle_length: int, first_round: list[int], slot: list[int]
) -> None:
    order = Interleave(lengths, cycle_length=cycle_length, block_length=2)
    rounds, slots = np.divmod(order._schedule.opening, order._schedule.cycle_length)
    assert (rounds.tolist(), slots.tolist()) == (first_round, slot)
    assert (order.num_shards, order.num_examples) == (len(lengths), sum(lengths))
