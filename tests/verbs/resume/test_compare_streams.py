"""Streams compared: place by place as two lists, and by number as two bags."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.verbs.resume import proof as module
from shardctl.verbs.resume.proof import left_and_excess, num_differing
from tests.verbs.resume.resume_cases import dataset

ORDER = plan_order(dataset(train=(4, 5)), "train").order
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


@given(chunks, chunks)
def test_what_is_left_and_what_came_too_often_are_those_of_two_bags(
    expected: list[list[int]], came: list[list[int]]
) -> None:
    found = left_and_excess(ORDER, arrays(expected), arrays(came))
    bags = [Counter(code for chunk in side for code in chunk) for side in (expected, came)]
    assert found == ((bags[0] - bags[1]).total(), (bags[1] - bags[0]).total())


def test_codes_of_all_splits_that_are_read_are_counted() -> None:
    both = plan_order(dataset(train=(2,), test=(3,)), "train+test").order
    assert left_and_excess(both, arrays([[0, 1, 2, 3, 4]]), []) == (5, 0)


def test_more_examples_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 8)
    with pytest.raises(UsageError, match="9 are more than 8"):
        left_and_excess(ORDER, [], [])
