"""Columns drawn at random, with the texts that formats write in ways of their own."""

from __future__ import annotations

from hypothesis import strategies as st

from shardctl.base.columns import Cell, Records

# What JSON, YAML or CSV escape, quote or refuse, and what spreadsheets and runners of CI act on.
_CHARACTERS = [*"aB7_-.,;:#'\"\\/ %{}[]=+@é中\n\t😀", "\x7f", "\u202e", "\udcff"]
_WORDS = ["##", "::", "train", "-of-", "1" + "0" * 19, "null", "yes", "=1+1", "##[error]", "::x::"]
_PLAIN = ["a", "train", "-of-", "é", "'", '"', ",", "7", "=", " "]


def some_texts(*, plain: bool = False) -> st.SearchStrategy[str]:
    """Return texts; plain ones have nothing that runners of CI act on."""
    piece = st.sampled_from(_PLAIN if plain else [*_CHARACTERS, *_WORDS])
    return st.lists(piece, max_size=4).map("".join)


def some_cell(count: int, *, plain: bool = False) -> st.SearchStrategy[Cell]:
    """Return a column of so many values, or one value for all."""
    return st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count),
        st.lists(st.none() | st.integers(0, 9), min_size=count, max_size=count),
        st.lists(some_texts(plain=plain), min_size=count, max_size=count),
        st.sampled_from([None, 0, -3, "x", "a" if plain else "a::b"]),
    )


@st.composite
def some_cells(draw: st.DrawFn, *, plain: bool = False) -> tuple[int, list[Cell]]:
    """Return how many rows there are, and their columns."""
    count = draw(st.integers(0, 6))
    return count, draw(st.lists(some_cell(count, plain=plain), min_size=2, max_size=4))


def records_of(count: int, cells: list[Cell]) -> Records:
    """Return records of whole columns."""
    fields = ["position", "é", "no", "100% b"][: len(cells)]
    return Records(
        count,
        fields,
        lambda start, stop: [c[start:stop] if isinstance(c, list) else c for c in cells],
    )
