"""Columns of numbers and texts, and records made of them, beside Python's own formatting."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.core.columns import HOLE, Cell, Numbers, Records, Texts, cell_values
from tests.cases import check_cases
from tests.columns import some_numbers, some_texts


def test_numbers_as_text() -> None:
    def check(case: tuple[list[int], int]) -> None:
        values, num_digits = case
        array = np.array(values, np.int64)
        column = Numbers(values=array, num_digits=num_digits)
        assert column.texts() == [f"{value:0{num_digits}d}" for value in values]
        assert column.tolist() == values
        assert len(column) == len(values)
        grouped = Numbers(values=array, grouped=True)
        assert grouped.texts() == [f"{value:,}" for value in values]

    check_cases(st.tuples(some_numbers(), st.integers(1, 20)), check, 60)


def test_texts_are_their_forms_with_numbers_put_in() -> None:
    def check(case: tuple[int, Texts]) -> None:
        count, column = case
        expected = []
        for row in range(count):
            text = column.forms[0 if column.which is None else column.which[row]]
            for hole in column.holes:
                text = text.replace(HOLE, hole.texts()[row], 1)
            expected.append(text)
        assert column.tolist() == expected
        numbers = Numbers(values=np.arange(count) * 1000, grouped=True)
        ended = column.followed_by(f"__{HOLE}", numbers).tolist()
        assert ended == [f"{text}__{row * 1000:,}" for row, text in enumerate(expected)]

    cases = st.integers(0, 7).flatmap(lambda count: st.tuples(st.just(count), some_texts(count)))
    check_cases(cases, check, 60)


def test_records_are_made_piece_by_piece() -> None:
    asked: list[tuple[int, int]] = []

    def columns(start: int, stop: int) -> list[Cell]:
        asked.append((start, stop))
        return [Numbers(values=np.arange(start, stop)), "x", None]

    records = Records(40_000, ("a", "b", "c"), columns)
    assert records[39_999] == {"a": 39_999, "b": "x", "c": None}
    assert asked == [(39_999, 40_000)]
    asked.clear()
    assert [record["a"] for record in records] == list(range(40_000))
    assert asked == [(0, 16_384), (16_384, 32_768), (32_768, 40_000)]
    assert records[1:3] == [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "x", "c": None}]
    assert list(Records(0, ("a",), columns)) == []
    assert cell_values(7, 3) == [7, 7, 7]
