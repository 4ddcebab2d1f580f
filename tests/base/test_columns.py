"""Records made of columns, piece by piece."""

from __future__ import annotations

from shardctl.base.columns import Cell, Records, rows_of


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
