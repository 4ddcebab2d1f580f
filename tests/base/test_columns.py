"""Sequences made on demand, and records made of columns, piece by piece."""

from __future__ import annotations

import copy
import pickle

import pytest

from shardctl.base.by_name import PROVIDERS
from shardctl.base.columns import Cell, OnDemand, Records, Tabular, rows_of


def test_a_sequence_made_on_demand_is_the_list_of_its_items() -> None:
    squares = OnDemand(5, lambda index: index**2)
    assert list(squares) == [0, 1, 4, 9, 16]
    assert (squares[-1], squares[1:3], len(squares), bool(OnDemand(0, str))) == (
        *(16, [1, 4], 5),
        False,
    )
    assert squares == (0, 1, 4, 9, 16)
    assert squares != [0, 1, 4, 9]
    assert squares != "01234"
    with pytest.raises(IndexError):
        squares[5]
    # Another process gets its items.
    assert pickle.loads(pickle.dumps(squares)) == (0, 1, 4, 9, 16)
    assert copy.deepcopy(squares) is copy.copy(squares) is squares
    made: list[int] = []
    OnDemand(10**12, made.append)[10**12 - 1]
    assert made == [10**12 - 1]


def test_records_are_made_piece_by_piece() -> None:
    asked: list[tuple[int, int]] = []

    def columns(start: int, stop: int) -> list[Cell]:
        asked.append((start, stop))
        return [list(range(start, stop)), "x", None]

    records = Records(40_000, ("a", "b", "c"), columns)
    assert records[39_999] == {"a": 39_999, "b": "x", "c": None}
    assert asked == [(39_999, 40_000)]
    asked.clear()
    assert [record["a"] for record in records] == list(range(40_000))
    assert asked == [(0, 16_384), (16_384, 32_768), (32_768, 40_000)]
    assert records[1:3] == [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "x", "c": None}]
    assert list(Records(0, ("a",), columns)) == []
    assert [*rows_of(3, [7])] == [(7,)] * 3


def test_a_table_is_made_by_what_is_provided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, "html", "base.text:quoted")
    monkeypatch.setitem(PROVIDERS, "to_pandas", "base.text:quoted")
    rows = Tabular()
    assert "Tabular" in rows._repr_html_()
    assert rows.to_pandas() == rows._repr_html_()
