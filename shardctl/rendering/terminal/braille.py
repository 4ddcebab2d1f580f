"""Dots of braille: what lies where, two dots a column and four a line of text."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)

_BITS = np.array([[1, 8], [2, 16], [4, 32], [64, 128]])  # of the dots of a character, from U+2800
_DOTS_HIGH, _DOTS_WIDE = _BITS.shape
_EVEN = 2  # dots of a character where as much lies as anywhere else: every fourth one
_MOSTLY = 0.75  # of all characters, with which of so many dots they look even
# Which dots come first where none of a character has more than the others: set in this order they
# lie evenly, beside those of the next characters too.
_TURNS = np.array([[0, 4], [6, 2], [5, 1], [3, 7]])
_FILLED = 0.25  # of what is expected of a dot, from which on it has no less than others


def braille(dots: NDArray[np.bool_]) -> list[str]:
    """Return dots (bool[rows, columns]) as lines of text; what no character is full of is blank.

    >>> braille(np.eye(4, dtype=bool)), braille(np.ones((1, 3), dtype=bool))
    (['⠑⢄'], ['⠉⠁'])
    """
    rows, columns = dots.shape
    padded = np.pad(dots, ((0, -rows % _DOTS_HIGH), (0, -columns % _DOTS_WIDE)))
    codes = (_blocks(padded) * _BITS).sum(axis=(2, 3)) + 0x2800
    return ["".join(map(chr, line)) for line in codes.tolist()]


def _blocks(cells: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return what belongs to each character, [lines, columns, 4, 2], a view of `cells`."""
    rows, columns = cells.shape
    blocks = cells.reshape(rows // _DOTS_HIGH, _DOTS_HIGH, columns // _DOTS_WIDE, _DOTS_WIDE)
    return blocks.swapaxes(1, 2)


def grey(places: NDArray[np.float64], columns: int, lines: int) -> NDArray[np.bool_]:
    """Return the dots of places from 0 to 1 (float64[n]) one after the other, 0 above.

    Characters have more dots the more lies there: two of eight where it lies evenly, so that a
    uniform permutation is an even grey. A dot is set only where something lies, so that the order
    of storage is a thin diagonal. Each column has as many of the places as the others.

    >>> print(*braille(grey(np.array([0.1, 0.4, 0.6, 0.9]), 4, 1)), sep="")
    ⠈⠐⠠⢀
    """
    height, width = lines * _DOTS_HIGH, columns * _DOTS_WIDE
    down = np.clip((places * height).astype(np.int64), 0, height - 1)
    right = (2 * np.arange(len(places)) + 1) * width // (2 * len(places))
    counts = np.bincount(down * width + right, minlength=height * width)
    cells = _blocks(counts.reshape(height, width)).reshape(lines, columns, -1)
    there = cells.sum(axis=2)
    expected = np.maximum(there.sum(axis=0), 1) / lines  # of a character of this column
    num_dots = np.rint(_EVEN * there / expected)
    filled = np.minimum(cells / (_FILLED * expected[:, None] / _BITS.size), 1.0)
    turns = np.broadcast_to(_TURNS.ravel(), cells.shape)
    first = np.lexsort((turns, -filled), axis=-1)
    dots = (np.argsort(first, axis=-1) < num_dots[..., None]) & (cells > 0)
    blocks = dots.reshape(lines, columns, _DOTS_HIGH, _DOTS_WIDE)
    return np.asarray(blocks.swapaxes(1, 2).reshape(height, width), bool)


def is_even(dots: NDArray[np.bool_]) -> bool:
    """Whether the dots of `grey` look like those of a uniform permutation."""
    return bool((_blocks(dots).sum(axis=(2, 3)) == _EVEN).mean() > _MOSTLY)
