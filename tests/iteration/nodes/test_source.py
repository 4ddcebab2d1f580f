"""Sources: codes in a fixed order."""

from __future__ import annotations

import numpy as np

from shardctl.iteration.iteration import NOTHING, Source
from tests.iteration.elements import all_of, check_lookups


def test_a_range_and_values_hand_out_their_codes() -> None:
    assert all_of(Source(range(3, 12, 4))) == [[3], [7], [11]]
    assert all_of(Source((5, -2, 5))) == [[5], [-2], [5]]
    assert all_of(NOTHING) == []


def test_both_are_looked_up() -> None:
    for codes in (range(10), range(3, 60, 4), (5, 3, 5, 50)):
        iteration = Source(codes).iterate()
        iteration.pull(100)
        assert check_lookups(iteration) == [[code] for code in codes]


def test_what_is_not_pulled_is_not_found() -> None:
    for codes in (range(10), tuple(range(10))):
        iteration = Source(codes).iterate()
        iteration.pull(4)
        query, elements = iteration.elements_of(np.array([3, 4, -1]))
        assert (query.tolist(), elements.tolist()) == ([0], [3])


def test_cardinality() -> None:
    source = Source(range(3))
    assert (source.cardinality, source.is_infinite, source.is_fixed) == (3, False, True)
