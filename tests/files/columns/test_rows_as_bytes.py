"""Rows as bytes, beside rows joined one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from shardctl.core.columns import Numbers
from shardctl.core.text import utf8
from shardctl.files.rows_as_bytes import Choice, Padded, Part, rows_as_bytes
from tests.cases import check_cases, few_or_many
from tests.columns import some_column


def _one(part: Part, row: int) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, Choice):
        return part.entries[int(part.which[row])]
    if isinstance(part, Padded):
        text = b"".join(_one(inner, row) for inner in part.parts).decode()
        padded = text.ljust(part.width) if part.align == "left" else text.rjust(part.width)
        return padded.encode()
    value = int(part.values[row])
    return f"{'-' * (value < 0)}{abs(value):0{part.num_digits}d}".encode()


def _slowly(parts: Sequence[Part], count: int) -> bytes:
    return b"".join(_one(part, row) for row in range(count) for part in parts)


@st.composite
def _choice(draw: st.DrawFn, count: int) -> Choice:
    entries = draw(st.lists(st.text("ab é中{", max_size=9), min_size=1, max_size=5))
    which = st.lists(st.integers(0, len(entries) - 1), min_size=count, max_size=count)
    return Choice(entries=list(map(utf8, entries)), which=np.array(draw(which), np.int64))


@st.composite
def _rows(draw: st.DrawFn) -> tuple[int, list[Part]]:
    count = draw(st.integers(0, 12))
    literal = st.sampled_from([b"", b",", b'{"position": ', "é".encode()])
    plain = st.one_of(literal, some_column(count), _choice(count))
    padded = st.builds(
        lambda parts, width, align: Padded(parts=parts, width=width, align=align),
        st.lists(plain, max_size=3),
        st.integers(0, 12),
        st.sampled_from(["left", "right"]),
    )
    return count, draw(st.lists(st.one_of(plain, padded), max_size=6))


@few_or_many(25, 100)
def test_rows_are_those_joined_one_by_one(num_cases: int) -> None:
    def check(case: tuple[int, list[Part]]) -> None:
        count, parts = case
        assert rows_as_bytes(parts, count) == _slowly(parts, count)

    check_cases(_rows(), check, num_cases)


def test_short_and_long_entries_together() -> None:
    # Of some of these rows most places are empty; of the others few.
    numbers = Numbers(values=np.arange(1000))
    for entries in ([b"a", b"b" * 200], [b"c" * 200, b"d" * 199]):
        parts: list[Part] = [Choice(entries=entries, which=numbers.values // 999), numbers, b"\n"]
        assert rows_as_bytes(parts, 1000) == _slowly(parts, 1000)


def test_a_text_is_padded_as_numbers_are() -> None:
    parts: list[Part] = [Padded(parts=["é".encode()], width=3, align="right"), b"\n"]
    assert rows_as_bytes(parts, 2) == "  é\n  é\n".encode()
