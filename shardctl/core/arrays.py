"""Long arrays of whole numbers: the type they all share, and their distinct values."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.core.arguments.kinds import Kind, kind_of
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

Int64s = NDArray[np.int64]

_RULE = "whole numbers are needed, as one list or array"


def whole_numbers(values: Any) -> Int64s:
    """Return the whole numbers of an array, a list, a tensor or a single number, int64[n].

    NumPy itself would cut 1.5 to 1, read "1", and wrap what 64 bits do not hold.

    >>> whole_numbers([3, np.uint8(1)]).tolist(), whole_numbers(7).tolist(), whole_numbers([])
    ([3, 1], [7], array([], dtype=int64))

    Raises:
        UsageError: something else, in several dimensions, or more than an int64 holds.
    """
    if not hasattr(values, "dtype") and hasattr(values, "__iter__"):
        listed: tuple[int, ...] = _LIST.take(values)
        if listed and not -INT64_MAX - 1 <= min(listed) <= max(listed) <= INT64_MAX:
            raise UsageError(f"numbers up to {INT64_MAX} are needed")
        return np.array(listed, np.int64)
    try:
        array = np.asarray(values)
    except Exception:  # a tensor of a graph
        raise UsageError(_RULE) from None
    if array.ndim > 1 or (array.dtype.kind not in "iu" and array.size):
        raise UsageError(_RULE)
    if array.dtype.kind == "u" and array.size and int(array.max()) > INT64_MAX:
        raise UsageError(f"numbers up to {INT64_MAX} are needed")
    return array.astype(np.int64, copy=False).reshape(-1)


_LIST = kind_of(tuple[int, ...])
Int64sLike = Annotated[
    ArrayLike, Kind(take=whole_numbers, needed="an array of whole numbers", several="arrays")
]


def distinct(values: Int64s) -> Int64s:
    """Return the distinct values of int64[n], ascending.

    NumPy 2.3's own `unique` goes by a hash table, which takes 50 times as long where the values are
    many and different; and its module takes 10 ms to import.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ascending = np.sort(values)
    if len(ascending) < 2:
        return ascending
    # The first of each run of equal values.
    first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return ascending[np.flatnonzero(first)]
