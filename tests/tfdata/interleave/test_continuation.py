from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.tfdata.interleave import Interleave, InterleaveState
from tests.cases import FUZZ, check_cases, counted, in_this_run, random_of_a_fuzz_run
from tests.oracles import interleave_by_hand
from tests.tfdata.interleave.interleave_cases import (
    Case,
    cases,
    interleave,
    random_case,
    tensorflow_order,
)


# Two slots, blocks of 2; the order is 00 00 11 11 00 11 22 22 11 2 (shards 0, 1, 2 of 3, 5, 3).
@pytest.mark.parametrize(
    ("position", "slots", "block_offset", "next_shard"),
    [
        pytest.param(0, ((None, 0), (None, 0)), 0, 0, id="nothing read"),
        pytest.param(1, ((0, 1), (None, 0)), 1, 1, id="in the first block"),
        pytest.param(2, ((None, 0), (0, 2)), 0, 1, id="after the first block"),
        pytest.param(3, ((1, 1), (0, 2)), 1, 2, id="in the second slot"),
        pytest.param(4, ((0, 2), (1, 2)), 0, 2, id="both open"),
        pytest.param(5, ((1, 2), (None, 0)), 0, 2, id="a shard ended: its slot is free"),
        pytest.param(7, ((None, 0), (1, 4)), 0, 2, id="the next shard takes the free slot"),
        pytest.param(10, ((2, 2), (None, 0)), 0, 3, id="no shard is left for the free slot"),
        pytest.param(11, ((None, 0), (None, 0)), 0, 3, id="the end"),
    ],
)
def test_the_state_says_what_is_in_each_slot(
    position: int, slots: tuple[tuple[int | None, int], ...], block_offset: int, next_shard: int
) -> None:
    order = Interleave([3, 5, 3], cycle_length=2, block_length=2)
    assert order.state(position) == InterleaveState(
        slots=slots, block_offset=block_offset, next_shard=next_shard
    )


@pytest.mark.parametrize(
    ("consumed", "entries"),
    [
        pytest.param(0, [(0, 0, 3), (1, 0, 5), (2, 0, 3)], id="everything"),
        pytest.param(1, [(0, 1, 1), (1, 0, 5), (0, 2, 1), (2, 0, 3)], id="a cut block completes"),
        pytest.param(3, [(1, 1, 1), (0, 2, 1), (1, 2, 3), (2, 0, 3)], id="the rest of the cut"),
        pytest.param(8, [(2, 1, 1), (1, 4, 1), (2, 2, 1)], id="the slots hold the last shards"),
        pytest.param(11, [], id="nothing"),
    ],
)
def test_the_continuation_lists_slots_then_unopened_shards(
    consumed: int, entries: list[tuple[int, int, int]]
) -> None:
    columns = Interleave([3, 5, 3], cycle_length=2, block_length=2).continuation(consumed)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == entries


def test_a_fresh_interleave_of_the_continuation_reads_the_rest() -> None:
    def law(pair: tuple[Case, st.DataObject]) -> int:
        case, data = pair
        cycle, block = case.cycle_length, case.block_length
        whole = interleave_by_hand(case.lengths, cycle, block)
        drawn = data.draw(st.lists(st.integers(0, len(whole)), max_size=5))
        places = {0, len(whole), *drawn}
        for consumed in places:
            shard, skip, take = (x.tolist() for x in interleave(case).continuation(consumed))
            rest = interleave_by_hand(take, cycle, block)
            assert [(shard[i], skip[i] + j) for i, j in rest] == whole[consumed:]
        return len(places)

    check_cases(st.tuples(cases(), st.data()), law, 50)


@settings(max_examples=in_this_run(100), deadline=None)
@given(cases(), st.data())
def test_a_continuation_can_be_continued(case: Case, data: st.DataObject) -> None:
    cycle, block = case.cycle_length, case.block_length
    whole = interleave_by_hand(case.lengths, cycle, block)
    first = data.draw(st.integers(0, len(whole)))
    second = data.draw(st.integers(first, len(whole)))
    shard, skip, take = interleave(case).continuation(first)
    rest = Interleave(take, cycle_length=cycle, block_length=block)
    entry, more, left = rest.continuation(second - first)
    pairs = [
        (int(shard[entry[i]]), int(skip[entry[i]] + more[i]) + j)
        for i, j in interleave_by_hand(left.tolist(), cycle, block)
    ]
    assert pairs == whole[second:]


def check_against_tensorflow(tf: Any, num_cases: int, random: Random) -> None:
    """Compare TensorFlow's whole pass with TensorFlow's pass over the continuation."""
    for number in counted(range(num_cases)):
        case = random_case(random)
        whole = tensorflow_order(tf, list(zip(case.first_ids, case.lengths, strict=True)), case)
        consumed = random.randint(0, len(whole))
        shard, skip, take = (x.tolist() for x in interleave(case).continuation(consumed))
        ranges = [(case.first_ids[s] + k, t) for s, k, t in zip(shard, skip, take, strict=True)]
        assert tensorflow_order(tf, ranges, case) == whole[consumed:], (number, case, consumed)


def test_tensorflow_continues_exactly_from_the_continuation(tf: Any) -> None:
    check_against_tensorflow(tf, 20, Random(3))


@pytest.mark.fuzz
def test_tensorflow_continues_exactly_from_the_continuation_in_many_cases(tf: Any) -> None:
    check_against_tensorflow(tf, FUZZ // 2, random_of_a_fuzz_run())
