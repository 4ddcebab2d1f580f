"""Rows as bytes: a matrix with a row each, whose places without a character are taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.columns import Numbers
from shardctl.files.columns.digits import Bytes, digits_of

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
