"""Streams compared: place by place as two lists, and by number as two bags."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.arrays import Int64s
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.errors import UsageError
from shardctl.planning.resume import compare_streams as module
from shardctl.planning.resume.compare_streams import Counts, num_differing
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
    # An empty chunk ends a comparison, so streams have none.
    streams = [[chunk for chunk in arrays(side) if len(chunk)] for side in (left, right)]
    assert num_differing(*streams) == expected


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
