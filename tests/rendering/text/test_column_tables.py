"""Tables whose cells are columns, beside the same tables of rows made one by one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.columns import Cell, Numbers, Texts, texts_of
from shardctl.rendering.text.column_tables import TextRows
from shardctl.rendering.text.tables import Column, Screen, table
from tests.cases import check_cases, few_or_many
from tests.columns import rows_of, some_cell

_SCREENS = st.builds(
    Screen,
    width=st.none() | st.integers(10, 200),
    color=st.booleans(),
    abridged=st.booleans(),
)


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[Column], TextRows, int | None, Screen]:
    count = draw(st.integers(0, 12))
    cells = draw(
        st.lists(some_cell(count).filter(lambda cell: cell is not None), min_size=1, max_size=4)
    )
    sides: st.SearchStrategy[Literal["left", "right"]] = st.sampled_from(["left", "right"])
    columns = [
        Column(heading=f"column {index}", align=draw(sides), names_files=draw(st.booleans()))
        for index in range(len(cells))
    ]

    def some(start: int, stop: int) -> list[Cell]:
        return [rows_of(cell, slice(start, stop)) for cell in cells]

    return columns, TextRows(count, some), draw(st.none() | st.integers(2, 8)), draw(_SCREENS)


def _as_rows(case: tuple[list[Column], TextRows, int | None, Screen]) -> None:
    columns, rows, keep, screen = case
    expected = table(columns, [*rows], screen, keep=keep)
    assert table(columns, rows, screen, keep=keep) == expected
    assert [rows[index] for index in range(len(rows))] == [*rows]


@few_or_many(15, 60)
def test_any_columns_make_the_table_of_their_rows(num_cases: int) -> None:
    check_cases(_tables(), _as_rows, num_cases)


@pytest.mark.long
def test_many_rows_are_several_pieces() -> None:
    numbers = np.arange(17_000)
    names = Texts(forms=["名前-\0"], holes=(Numbers(values=numbers, num_digits=5),))

    def some(start: int, stop: int) -> list[Cell]:
        here = slice(start, stop)
        words = texts_of("-" if number % 7 else "1.5 KiB" for number in range(start, stop))
        return [rows_of(names, here), Numbers(values=numbers[here] ** 2), words]

    columns = [Column(heading="file", align="left"), Column(heading="n"), Column(heading="bytes")]
    rows = TextRows(len(numbers), some)
    for screen in (Screen(), Screen(width=80, color=True)):
        assert table(columns, rows, screen) == table(columns, [*rows], screen)
