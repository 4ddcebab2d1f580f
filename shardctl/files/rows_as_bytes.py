"""Rows as bytes: a matrix with a row each, whose places without a character are taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.columns import HOLE, Cell, Numbers, Texts, cell_values
from shardctl.core.text import utf8

_NOTHING = b"\0"
# To take out a NUL costs as much as to look at so many bytes one by one.
_COST = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """A part of rows: row i has `entries[which[i]]`, which hold no NUL."""

    entries: Sequence[bytes]
    which: Int64s


@dataclass(frozen=True, kw_only=True, eq=False)
class Padded:
    """Parts of rows with blanks before or after them, so that they take `width` characters.

    Characters are code points; entries that are wider or narrower on a screen are padded by those
    who know.
    """

    parts: Sequence[bytes | Numbers | Choice]
    width: int
    align: Literal["left", "right"]


Part = bytes | Numbers | Choice | Padded


def rows_as_bytes(parts: Sequence[Part], count: int) -> bytearray:
    r"""Return so many rows one after the other, each made of these parts, as bytes.

    A part of `bytes` is the same in each row. Some ten thousand rows at once are fastest.

    >>> names = Choice(entries=[b"train", b"test"], which=np.array([0, 1]))
    >>> parts = [names, b": ", Numbers(values=np.array([5, 10])), b"\n"]
    >>> bytes(rows_as_bytes(parts, 2))
    b'train: 5\ntest: 10\n'
    >>> left, right = (Padded(parts=[part], width=6, align=align)
    ...                for part, align in ((names, "left"), (parts[2], "right")))
    >>> bytes(rows_as_bytes([left, right, b"\n"], 2))
    b'train      5\ntest      10\n'
    """
    row = bytearray()
    placed: list[tuple[int, Bytes, Int64s | None]] = []
    for part in _without_padding(parts):
        if isinstance(part, bytes):
            row += part
            continue
        if isinstance(part, Numbers):
            matrix, which = digits_of(part), None
        else:
            matrix, which = _entries(part.entries), part.which
        if matrix.shape[1]:
            placed.append((len(row), matrix, which))
            row += bytes(matrix.shape[1])
    text = row * count
    if not placed or not count:
        return text
    rows = np.frombuffer(text, np.uint8).reshape(count, len(row))
    for start, matrix, which in placed:
        width = matrix.shape[1]
        # A row of it as one value: three times as fast to copy as its bytes.
        values = matrix.view(f"V{width}")
        rows[:, start : start + width].view(f"V{width}")[:] = (
            values if which is None else values[which]
        )
    return _without_empty(text)


def _without_empty(text: bytearray) -> bytearray:
    """Return text without its NULs, in the way that is faster for as many as there seem to be."""
    part = len(text) // 16
    middle = len(text) // 2
    num_empty = text.count(_NOTHING, middle, middle + part)
    if num_empty * _COST > part:
        return text.translate(None, _NOTHING)
    return text.replace(_NOTHING, b"")


def _entries(entries: Sequence[bytes]) -> Bytes:
    """Return entries as rows of a matrix, with NULs behind the short ones."""
    width = max(map(len, entries), default=0)
    joined = b"".join([entry.ljust(width, _NOTHING) for entry in entries])
    return np.frombuffer(joined, np.uint8).reshape(len(entries), width)


def _without_padding(parts: Sequence[Part]) -> list[bytes | Numbers | Choice]:
    """Return parts with the blanks of those that are padded as parts of their own."""
    found: list[bytes | Numbers | Choice] = []
    for part in parts:
        if not isinstance(part, Padded):
            found.append(part)
            continue
        lacking = np.maximum(part.width - sum(map(_num_characters, part.parts)), 0)
        blanks: bytes | Choice
        if np.ndim(lacking) == 0:
            blanks = b" " * int(lacking)
        else:
            # Never empty.
            most = int(lacking.max(initial=0))
            blanks = Choice(entries=[b" " * n for n in range(most + 1)], which=lacking)
        found += [*part.parts, blanks] if part.align == "left" else [blanks, *part.parts]
    return found


def _num_characters(part: bytes | Numbers | Choice) -> int | Int64s:
    if isinstance(part, bytes):
        return len(part.decode())
    lengths: Int64s
    if isinstance(part, Choice):
        lengths = np.array([len(entry.decode()) for entry in part.entries], np.int64)
        return lengths[part.which]
    lengths = np.count_nonzero(digits_of(part), axis=1)
    return lengths


# Numbers as a matrix of their digits.

Bytes = NDArray[np.uint8]

_GROUP = 4  # digits looked up at once
_BASE = 10**_GROUP


def digits_of(numbers: Numbers) -> Bytes:
    r"""Return the texts of numbers, uint8[n, width]; where there is no character, a NUL.

    >>> digits_of(Numbers(values=np.array([7, -1200]))).tobytes()
    b'\x00\x00\x00\x007-1200'
    """
    values = numbers.values
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    width = max(len(str(max(high, -low))), numbers.num_digits)
    # The absolute value of the least int64 is none.
    rest = values if low >= 0 else np.abs(values).view(np.uint64)
    count = -(-width // _GROUP)
    groups = np.empty((len(values), count), np.uint32)
    table = _digit_table()
    for place in range(count):
        above = rest // _BASE if place + 1 < count else None
        group = rest if above is None else rest - above * rest.dtype.type(_BASE)
        group = group.astype(np.int64, copy=False)
        shown = min(max(numbers.num_digits - place * _GROUP, 0), _GROUP)
        if above is None:
            group = group + shown * _BASE
        elif shown < _GROUP:
            group += np.where(above == 0, shown * _BASE, _GROUP * _BASE)
        else:
            group += _GROUP * _BASE
        groups[:, count - 1 - place] = table[group]
        if above is not None:
            rest = above
    matrix: Bytes = groups.view(np.uint8)[:, _GROUP * count - width :]
    if numbers.grouped:
        matrix = _grouped(matrix)
    if low < 0:
        signs = np.where(values < 0, ord("-"), 0).astype(np.uint8)
        matrix = np.concatenate([signs[:, None], matrix], axis=1)
    return matrix


@cache
def _digit_table() -> NDArray[np.uint32]:
    """Return the digits of all groups, as four bytes each, with at least 0, 1, .. 4 of them."""
    groups = np.arange(_BASE)
    places = 10 ** np.arange(_GROUP)[::-1]
    digits = (groups[:, None] // places % 10 + ord("0")).astype(np.uint8)
    leading = groups[:, None] < places
    tables = [
        np.where(leading & (np.arange(_GROUP) < _GROUP - shown), 0, digits)
        for shown in range(_GROUP + 1)
    ]
    return np.ascontiguousarray(tables, np.uint8).view(np.uint32).reshape(-1)


def _grouped(digits: Bytes) -> Bytes:
    """Return digits with a comma before every three from the right, where there are any before."""
    pieces = [digits[:, -3:]]
    for end in range(3, digits.shape[1], 3):
        commas = np.where(digits[:, -end - 1] != 0, ord(","), 0).astype(np.uint8)
        pieces[:0] = [digits[:, -end - 3 : -end], commas[:, None]]
    return np.concatenate(pieces, axis=1)


# Rows of cells in a format: what is the same in every row once, the rest as columns.

# Stands for a number where a form is written; its end is nowhere its beginning, so that it is
# found where it was put. Made longer where a form has it too.
_MARK = "1" + "0" * 19


@dataclass(frozen=True, kw_only=True)
class Writer:
    """How a format writes rows: what is before each cell, and after the last; one cell; a row.

    What `cell` makes of a text must not depend on the other texts of a row, unless one has
    characters that are not printable, or that runners of CI look for: then `row` is asked.
    """

    before: Sequence[str]
    after: str
    cell: Callable[[object], str]
    row: Callable[[Sequence[object]], str]


def written_rows(cells: Sequence[Cell], count: int, writer: Writer) -> bytes | bytearray:
    """Return so many rows, one after the other, as UTF-8."""
    if not all(map(_is_plain, cells)):
        values = [cell_values(cell, count) for cell in cells]
        return utf8("".join(map(writer.row, zip(*values, strict=True))))
    parts: list[Part] = []
    for before, cell in zip(writer.before, cells, strict=True):
        parts += [utf8(before), *parts_of(cell, writer.cell)]
    return rows_as_bytes([*parts, utf8(writer.after)], count)


def parts_of(cell: Cell, write: Callable[[object], str] = str) -> Sequence[Part]:
    """Return the parts of a cell as a function writes it; numbers are written as digits."""
    if isinstance(cell, Numbers):
        return [cell]
    if not isinstance(cell, Texts):
        return [utf8(write(cell))]
    forms = cell.forms if cell.which is not None else cell.forms[:1]
    written = [_pieces(form, write) for form in forms]
    parts: list[Part] = []
    for place, pieces in enumerate(zip(*written, strict=True)):
        if place:
            parts.append(cell.holes[place - 1])
        if cell.which is None or len(set(pieces)) == 1:
            parts.append(utf8(pieces[0]))
        else:
            parts.append(Choice(entries=list(map(utf8, pieces)), which=cell.which))
    return parts


def _pieces(form: str, write: Callable[[object], str]) -> list[str]:
    """Return what stands before, between and after the holes of a form when it is written."""
    mark = _MARK
    while len(pieces := write(form.replace(HOLE, mark)).split(mark)) != form.count(HOLE) + 1:
        mark += "0"
    return pieces


def _is_plain(cell: Cell) -> bool:
    if isinstance(cell, Texts):
        texts = " ".join(cell.forms).replace(HOLE, "0")
    else:
        texts = cell if isinstance(cell, str) else ""
    return texts.isprintable() and "##" not in texts and "::" not in texts
