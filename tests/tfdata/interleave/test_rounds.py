"""Visits in turn: their ordinals and places are those of slots visited one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.tfdata.schedule import Rounds

stops_of_slots = st.lists(st.integers(1, 12), min_size=1, max_size=20)


def visits_by_hand(stops: list[int]) -> list[tuple[int, int]]:
    """Return (round, slot) of every visit, by going round until every slot has stopped."""
    return [
        (turn, slot)
        for turn in range(max(stops))
        for slot in range(len(stops))
        if turn < stops[slot]
    ]


@pytest.mark.parametrize(
    ("stops", "visits"),
    [
        pytest.param([1], [(0, 0)], id="one slot, one round"),
        pytest.param([3], [(0, 0), (1, 0), (2, 0)], id="one slot"),
        pytest.param([2, 2], [(0, 0), (0, 1), (1, 0), (1, 1)], id="slots that stop together"),
        pytest.param([3, 1], [(0, 0), (0, 1), (1, 0), (2, 0)], id="the last slot stops first"),
        pytest.param([1, 3], [(0, 0), (0, 1), (1, 1), (2, 1)], id="the first slot stops first"),
        pytest.param([2, 1, 3], [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 2)], id="one by one"),
    ],
)
def test_slots_are_visited_in_turn_until_they_stop(
    stops: list[int], visits: list[tuple[int, int]]
) -> None:
    rounds, slots = Rounds.until(np.array(stops)).places(np.arange(len(visits)))
    assert list(zip(rounds.tolist(), slots.tolist(), strict=True)) == visits


@given(stops_of_slots)
def test_places_and_ordinals_are_those_of_visits_listed_one_by_one(stops: list[int]) -> None:
    found = Rounds.until(np.array(stops))
    visits = visits_by_hand(stops)
    every = np.arange(len(visits))
    rounds, slots = found.places(every)
    assert list(zip(rounds.tolist(), slots.tolist(), strict=True)) == visits
    assert found.ordinals(rounds, slots).tolist() == every.tolist()


@given(stops_of_slots)
def test_segments_are_the_stretches_of_rounds_without_a_stop(stops: list[int]) -> None:
    found = Rounds.until(np.array(stops))
    visits = visits_by_hand(stops)
    borders = [0, *sorted(set(stops))]
    assert found.first_round.tolist() == borders
    assert found.num_active.tolist() == [sum(stop > turn for stop in stops) for turn in borders]
    assert found.first_ordinal.tolist() == [sum(v[0] < turn for v in visits) for turn in borders]


def test_rounds_that_take_63_bits_to_count_do_not_overflow() -> None:
    # Slot 0 alone from round 1 on: its ordinals are the rounds, and one more.
    found = Rounds.until(np.array([2**62, 1]))
    last = np.array([2**62])
    assert [x.tolist() for x in found.places(last)] == [[2**62 - 1], [0]]
    assert found.ordinals(np.array([2**62 - 1]), np.array([0])).tolist() == [2**62]
