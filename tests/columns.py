"""Columns drawn at random, with the texts that formats write in ways of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.core.columns import HOLE, Cell, Numbers, Records, Texts

# What JSON, YAML or CSV escape, quote or refuse, and what spreadsheets and runners of CI act on.
_CHARACTERS = [*"aB7_-.,;:#'\"\\/ %{}[]=+@é中\n\t😀", "\x7f", "\u202e", "\udcff"]
_WORDS = ["##", "::", "train", "-of-", "1" + "0" * 19, "null", "yes", "=1+1", "##[error]", "::x::"]
_PLAIN = ["a", "train", "-of-", "é", "'", '"', ",", "7", "=", " "]
_LEAST, _MOST = -(2**63), 2**63 - 1


def some_numbers(least: int = _LEAST) -> st.SearchStrategy[list[int]]:
    """Return lists of numbers, near powers of ten more often than by chance."""
    near = st.builds(
        lambda power, off, sign: min(max(sign * 10**power + off, least), _MOST),
        st.integers(0, 18),
        st.integers(-2, 2),
        st.sampled_from([-1, 1]),
    )
    return st.lists(st.one_of(near, st.integers(least, _MOST), st.integers(0, 12)), max_size=40)


@st.composite
def some_column(draw: st.DrawFn, count: int, least: int = _LEAST) -> Numbers:
    """Return a column of so many numbers."""
    some = draw(some_numbers(least).filter(bool))
    values = np.resize(np.array(some, np.int64), count)
    return Numbers(values=values, num_digits=draw(st.sampled_from([1, 1, 2, 5, 9])))


@st.composite
def some_texts(draw: st.DrawFn, count: int, *, plain: bool = False) -> Texts:
    """Return a column of so many texts; plain ones have nothing that runners of CI act on."""
    piece = st.sampled_from(_PLAIN if plain else [*_CHARACTERS, *_WORDS])
    text = st.lists(piece, max_size=4).map("".join)
    num_holes, num_forms = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    between = st.lists(text, min_size=num_holes + 1, max_size=num_holes + 1)
    forms = [HOLE.join(draw(between)) for _ in range(num_forms)]
    which = None
    if not num_holes or draw(st.booleans()):
        chosen = draw(st.lists(st.integers(0, num_forms - 1), min_size=count, max_size=count))
        which = np.array(chosen, np.int64)
    holes = tuple(draw(some_column(count, 0)) for _ in range(num_holes))
    return Texts(forms=forms, which=which, holes=holes)


def some_cell(count: int, *, plain: bool = False) -> st.SearchStrategy[Cell]:
    """Return a column of so many values, or one value for all; numbers are as in Python."""
    return st.one_of(
        some_column(count).map(lambda column: Numbers(values=column.values)),
        some_texts(count, plain=plain),
        st.sampled_from([None, 0, -3, "x", "a" if plain else "a::b"]),
    )


@st.composite
def some_cells(draw: st.DrawFn, *, plain: bool = False) -> tuple[int, list[Cell]]:
    """Return how many rows there are, and their columns."""
    count = draw(st.integers(0, 6))
    return count, draw(st.lists(some_cell(count, plain=plain), min_size=1, max_size=4))


def rows_of(cell: Cell, rows: slice) -> Cell:
    """Return some rows of a column."""
    if isinstance(cell, Numbers):
        values = cell.values[rows]
        return Numbers(values=values, num_digits=cell.num_digits, grouped=cell.grouped)
    if isinstance(cell, Texts):
        which = None if cell.which is None else cell.which[rows]
        holes = [rows_of(hole, rows) for hole in cell.holes]
        numbers = tuple(hole for hole in holes if isinstance(hole, Numbers))
        return Texts(forms=cell.forms, which=which, holes=numbers)
    return cell


def records_of(count: int, cells: list[Cell]) -> Records:
    """Return records of whole columns."""
    fields = ["position", "é", "no", "a b"][: len(cells)]
    return Records(
        count, fields, lambda start, stop: [rows_of(cell, slice(start, stop)) for cell in cells]
    )
