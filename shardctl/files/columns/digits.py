"""Numbers as a matrix of their digits."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from shardctl.core.columns import Numbers

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
