"""Stretches read by whole blocks: by hand, in each of the ways that blocks are laid out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.tfdata import interleave as interleave_read
from shardctl.tfdata.interleave import Interleave, read
from shardctl.tfdata.schedule import build_schedule
from tests.cases import check_cases, in_this_run
from tests.tfdata.interleave.interleave_cases import Case, cases, ids_by_hand, interleave

# Shards of 5, 0, 3 and 4, two at a time in blocks of 2; the empty shard holds a visit.
IN_TURNS = [0, 1, 2, 3, 20, 21, 4, 22, 30, 31, 32, 33]


@pytest.mark.parametrize("longest_dense_block", [0, 4])
@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 12), (0, 0), (5, 5), (12, 12), (1, 5), (3, 4), (4, 9), (6, 7), (7, 12), (11, 12)],
)
def test_a_stretch_begins_and_ends_inside_blocks(
    start: int, stop: int, longest_dense_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interleave_read, "_LONGEST_DENSE_BLOCK", longest_dense_block)
    schedule = build_schedule(np.array([5, 0, 3, 4]), 2, 2)
    ids = read(schedule, start, stop, np.array([0, 10, 20, 30]))
    assert ids.dtype == np.int64
    assert ids.tolist() == IN_TURNS[start:stop]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 6, [7, 8, 9, -5, -4, 100]),
        (2, 5, [9, -5, -4]),
        (1, 2, [8]),
        (5, 6, [100]),
    ],
)
def test_one_slot_reads_the_shards_in_sequence_from_any_first_ids(
    start: int, stop: int, expected: list[int]
) -> None:
    schedule = build_schedule(np.array([3, 0, 2, 1]), 1, 2)
    first_ids = np.array([7, 50, -5, 100])
    assert read(schedule, start, stop, first_ids).tolist() == expected
    assert first_ids.tolist() == [7, 50, -5, 100]


def test_blocks_longer_than_what_is_counted_at_a_time_run_on() -> None:
    length = (1 << 14) + 5  # a run of ids is counted on in pieces
    schedule = build_schedule(np.array([length, 2]), 2, 1 << 40)
    ids = read(schedule, 0, length + 2, np.array([0, -9]))
    np.testing.assert_array_equal(ids, [*range(length), -9, -8])


# Blocks are laid out whole or as runs, in pieces: each way of reading must read the same.
@pytest.mark.parametrize("longest_dense_block", [0, 4, 1 << 10])
@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_a_slice_read_is_that_slice_of_the_whole_order(
    longest_dense_block: int,
    piece: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interleave_read, "_LONGEST_DENSE_BLOCK", longest_dense_block)
    monkeypatch.setattr(interleave_read, "_PIECE", piece)

    def law(drawn: tuple[Case, st.DataObject]) -> None:
        case, data = drawn
        order = interleave(case)
        expected = ids_by_hand(case)
        start = data.draw(st.integers(0, order.num_examples))
        stop = data.draw(st.integers(start, order.num_examples))
        assert order.read(0, order.num_examples, case.first_ids).tolist() == expected
        assert order.read(start, stop, case.first_ids).tolist() == expected[start:stop]

    check_cases(st.tuples(cases().filter(lambda c: c.block_length < 100), st.data()), law, 35)


@settings(max_examples=in_this_run(100), deadline=None)
@given(cases())
def test_cycle_1_reads_the_shards_one_after_the_other(case: Case) -> None:
    order = Interleave(case.lengths, cycle_length=1, block_length=case.block_length)
    ids = order.read(0, order.num_examples, case.first_ids)
    assert ids.tolist() == [
        first + offset
        for first, length in zip(case.first_ids, case.lengths, strict=True)
        for offset in range(length)
    ]
