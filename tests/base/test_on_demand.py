"""Sequences made on demand: they are the list of their items, and keep none."""

from __future__ import annotations

import copy
import pickle

import pytest

from shardctl.base.columns import OnDemand


def test_it_is_the_sequence_of_its_items() -> None:
    squares = OnDemand(5, lambda index: index**2)
    assert list(squares) == [0, 1, 4, 9, 16]
    assert (squares[-1], squares[1:3], len(squares), bool(OnDemand(0, str))) == (
        16,
        [1, 4],
        5,
        False,
    )
    assert squares == (0, 1, 4, 9, 16)
    assert squares != [0, 1, 4, 9]
    assert squares != "01234"
    with pytest.raises(IndexError):
        squares[5]


def test_an_item_is_made_when_it_is_asked_for() -> None:
    made: list[int] = []
    items = OnDemand(10**12, made.append)
    assert made == []
    items[10**12 - 1]
    assert made == [10**12 - 1]


def test_another_process_gets_its_items() -> None:
    items = OnDemand(3, lambda index: [index])
    assert pickle.loads(pickle.dumps(items)) == ([0], [1], [2])
    assert copy.deepcopy(items) is copy.copy(items) is items
