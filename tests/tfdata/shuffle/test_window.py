"""The window of a shuffle: swaps done all at once are those of a list, one after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.tfdata.shuffle_window import ShuffleWindow


@st.composite
def swaps(draw: st.DrawFn) -> tuple[int, int, list[list[int]]]:
    """Draw a number of elements, a buffer and, chunk by chunk, where each step takes from."""
    num_elements = draw(st.integers(1, 60))
    buffer = draw(st.integers(1, num_elements))
    offsets = [
        draw(st.integers(0, min(buffer, num_elements - step) - 1)) for step in range(num_elements)
    ]
    cuts = sorted(draw(st.lists(st.integers(0, num_elements), max_size=4)))
    bounds = [0, *cuts, num_elements]
    return num_elements, buffer, [offsets[a:b] for a, b in pairwise(bounds)]


def played(num_elements: int, offsets: list[int]) -> list[int]:
    """Return what the steps hand out: each takes one and puts the oldest of the buffer there."""
    contents = list(range(num_elements))
    taken = []
    for step, offset in enumerate(offsets):
        taken.append(contents[step + offset])
        contents[step + offset] = contents[step]
    return taken


@given(swaps())
def test_what_is_handed_out_is_what_swapping_one_by_one_hands_out(
    case: tuple[int, int, list[list[int]]],
) -> None:
    num_elements, buffer, chunks = case
    window = ShuffleWindow(num_elements, buffer, 0)
    taken = [x for chunk in chunks for x in window.advance(np.array(chunk, np.uint64)).tolist()]
    assert taken == played(num_elements, [offset for chunk in chunks for offset in chunk])


@given(swaps(), st.data())
def test_the_contents_are_what_was_read_and_not_handed_out(
    case: tuple[int, int, list[list[int]]], data: st.DataObject
) -> None:
    num_elements, buffer, chunks = case
    offsets = [offset for chunk in chunks for offset in chunk]
    steps = data.draw(st.integers(0, num_elements - buffer))
    window = ShuffleWindow(num_elements, buffer, 0)
    taken = window.advance(np.array(offsets[:steps], np.uint64)).tolist()
    assert sorted([*taken, *window.contents().tolist()]) == list(range(steps + buffer))


def test_a_place_is_taken_from_more_than_once() -> None:
    window = ShuffleWindow(6, 3, 0)
    # 012345: 2 leaves and 0 takes its place, 0 leaves and 1 takes it, 1 leaves and stays gone.
    assert window.advance(np.array([2, 1, 0], np.uint8)).tolist() == [2, 0, 1]
    assert window.contents().tolist() == [3, 4, 5]


def test_a_buffer_entered_midway_holds_the_numbers_of_its_places() -> None:
    window = ShuffleWindow(100, 4, 50)
    assert window.contents().tolist() == [50, 51, 52, 53]
    # Input 53 leaves for what was at place 50 by then; the next input is read.
    assert window.advance(np.array([3, 3], np.uint8)).tolist() == [53, 54]
    assert window.contents().tolist() == [52, 50, 51, 55]


@pytest.mark.parametrize(
    ("num_elements", "dtype"), [(2**31 - 1, np.int32), (2**31, np.int64), (2**40, np.int64)]
)
def test_contents_are_as_wide_as_their_numbers_need(
    num_elements: int, dtype: type[np.signedinteger]
) -> None:
    window = ShuffleWindow(num_elements, 2, num_elements - 2)
    assert window.contents().dtype == dtype
    assert window.contents().tolist() == [num_elements - 2, num_elements - 1]
