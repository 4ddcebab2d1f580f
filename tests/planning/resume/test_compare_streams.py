"""Streams compared: place by place as two lists, and by number as two bags."""

from __future__ import annotations

import random
from collections import Counter
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.runs import Runs
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.errors import UsageError
from shardctl.planning.resume import proof as module
from shardctl.planning.resume.proof import (
    Counts,
    num_differing,
    num_differing_in_runs,
)
from tests.cases import add_cases
from tests.planning.resume.resume_cases import dataset

NINE = dataset(train=(4, 5))
chunks = st.lists(st.lists(st.integers(0, 8), max_size=6), max_size=5)


def arrays(lists: list[list[int]]) -> list[Int64s]:
    return [np.array(chunk, np.int64) for chunk in lists]


@given(chunks, chunks)
def test_places_that_differ_are_those_of_two_lists(
    left: list[list[int]], right: list[list[int]]
) -> None:
    one, other = ([code for chunk in side for code in chunk] for side in (left, right))
    expected = sum(a != b for a, b in zip_longest(one, other))
    assert num_differing(arrays(left), arrays(right)) == expected


def test_places_that_differ_in_runs_are_those_of_their_codes() -> None:
    for seed in range(400):
        draw = random.Random(seed)
        one = [draw.choice([0, 5, 9]) + i % 7 for i in range(draw.randrange(60))]
        other = one.copy()
        for _ in range(draw.choice([0, 1, 1, 20])):
            at = draw.randrange(len(other) + 1)
            other[at : at + draw.randrange(3)] = range(2, 2 + draw.randrange(3))
        expected = sum(a != b for a, b in zip_longest(one, other))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_FEW", draw.choice([1, 2, 256]))
            sides = [cut_in_runs(codes, draw) for codes in (one, other)]
            assert num_differing_in_runs(*sides) == expected, (seed, one, other)
        add_cases()


def cut_in_runs(codes: list[int], draw: random.Random) -> list[Runs]:
    """Return codes as runs of any length in pieces of any size."""
    rows: list[list[int]] = []
    for code in codes:
        if rows and sum(rows[-1]) == code and draw.random() < 0.9:
            rows[-1][1] += 1
        else:
            rows.append([code, 1])
    cuts = sorted(draw.choices(range(len(rows) + 1), k=draw.randrange(4)))
    table = np.array(rows, np.int64).reshape(-1, 2)
    return [(piece[:, 0], piece[:, 1]) for piece in np.split(table, cuts)]


@given(chunks, chunks)
def test_what_is_left_and_what_came_too_often_are_those_of_two_bags(
    expected: list[list[int]], came: list[list[int]]
) -> None:
    counts = Counts(ExampleCodes(NINE, ["train"]))
    counts.add(arrays(expected))
    counts.remove(arrays(came))
    bags = [Counter(code for chunk in side for code in chunk) for side in (expected, came)]
    assert counts.left() == (bags[0] - bags[1]).total()
    assert counts.excess() == (bags[1] - bags[0]).total()


def test_what_comes_several_times_can_be_expected_once_or_no_more() -> None:
    counts = Counts(ExampleCodes(NINE, ["train"]))
    counts.add(arrays([[1, 1, 1, 2], [1, 3]]))
    counts.take_once()
    assert counts.left() == 3
    counts.drop(np.array([1, 1, 8]))
    assert counts.left() == 2
    counts.remove(arrays([[2, 3, 8]]))
    assert (counts.left(), counts.excess()) == (0, 1)


def test_codes_of_all_splits_that_are_read_are_counted() -> None:
    both = dataset(train=(2,), test=(3,))
    counts = Counts(ExampleCodes(both, ["train", "test"]))
    counts.add(arrays([[0, 1, 2, 3, 4]]))
    assert counts.left() == 5


def test_more_examples_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 8)
    with pytest.raises(UsageError, match="9 are more than 8"):
        Counts(ExampleCodes(NINE, ["train"]))
