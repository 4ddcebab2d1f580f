"""Long arrays of whole numbers: the type they all share, and what is cheaper than NumPy has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.base.arguments import Kind, kind_of
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

Int64s = NDArray[np.int64]
_PIECE = 1 << 18  # numbers worked on at once, so that they stay in the cache
_FEW_KEYS = 16  # are told apart one by one faster than sorted
_MANY = 1 << 10  # numbers that are looked up in so many others


class Ids(np.ndarray[Any, np.dtype[np.int64]]):
    """An array of ids, int64, which may be called as the method that it was in 0.2.0."""

    def __call__(self) -> Int64s:
        return self.view(np.ndarray)

    def __repr__(self) -> str:
        return repr(self())

    def __reduce__(self) -> Any:
        return self().__reduce__()


class EqualByItems:
    """Equality of a dataclass with arrays among its fields: all items are equal.

    The one that `dataclass` makes asks an array whether it is true. Declared with `eq=False`.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]  # a dataclass is made of it
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(type(one) is type(other) and one == other)


def pieces(count: int) -> Iterator[slice]:
    """Yield slices that cover `count` numbers: what is done to them one by one needs no room.

    >>> list(pieces(3)), list(pieces(0))
    ([slice(0, 3, None)], [])
    """
    return (slice(start, min(start + _PIECE, count)) for start in range(0, count, _PIECE))


def counting(start: int, stop: int) -> Iterator[Int64s]:
    """Yield the numbers [start, stop), in pieces.

    >>> list(counting(3, 6))
    [array([3, 4, 5])]
    """
    return (np.arange(first, min(first + _PIECE, stop)) for first in range(start, stop, _PIECE))


def aligned(ones: Iterable[Int64s], twos: Iterable[Int64s]) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield two streams in pieces of equal sizes, and what one has beyond the other with no number.

    >>> list(aligned([np.array([4, 5])], [np.array([6])]))
    [(array([4]), array([6])), (array([5]), array([], dtype=int64))]
    """
    left = right = np.empty(0, np.int64)
    ones, twos = filter(len, ones), filter(len, twos)  # an empty piece is not the end
    while True:
        left = left if len(left) else next(ones, left)
        right = right if len(right) else next(twos, right)
        size = min(len(left), len(right)) or max(len(left), len(right))
        if not size:
            return
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]


def spans(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the pieces of [start, stop) that have a size, the last one what is left.

    >>> list(spans(3, 8, 2))
    [(3, 5), (5, 7), (7, 8)]
    """
    return ((first, min(first + size, stop)) for first in range(start, stop, size))


def constant(value: int, count: int) -> Int64s:
    """Return int64[count] of one value in the memory of one; it cannot be written to."""
    return np.broadcast_to(np.int64(value), count)


def ranges(starts: Int64s, counts: Int64s, step: int = 1) -> Int64s:
    """Return so many numbers from each start on, int64[sum of counts], without a loop.

    >>> ranges(np.array([7, 2]), np.array([1, 3])).tolist()
    [7, 2, 3, 4]
    """
    # The running number, less how many there are before each start.
    shifts = starts - (np.cumsum(counts) - counts) * step
    found: Int64s = np.repeat(shifts, counts) + np.arange(counts.sum()) * step
    return found


def is_constant(values: Int64s) -> bool:
    """Whether an array lies in memory as one value."""
    return len(values) > 1 and values.strides == (0,)


def chosen(values: Int64s, rows: Int64s | slice) -> Int64s:
    """Return `values[rows]`, where one value is enough as one value."""
    if not is_constant(values):
        return values[rows]
    count = len(range(*rows.indices(len(values)))) if isinstance(rows, slice) else len(rows)
    return constant(int(values[0]), count)


def joined_constants(several: Sequence[Int64s]) -> Int64s:
    """Return arrays one after the other, where all have one value as one value.

    >>> joined_constants([constant(3, 2), constant(3, 1)]).strides
    (0,)
    """
    several = [values for values in several if len(values)]
    firsts = {int(values[0]) for values in several}
    if len(firsts) == 1 and all(len(values) == 1 or is_constant(values) for values in several):
        return constant(firsts.pop(), sum(map(len, several)))
    return np.concatenate([np.empty(0, np.int64), *several])


def exact_sum(values: Int64s) -> int:
    """Return the sum of int64[n] as a Python integer, which does not wrap around."""
    if not len(values):
        return 0
    if max(int(values.max()), -int(values.min())) < 2**63 // len(values):
        return int(values.sum())
    return sum(sum(values[piece].tolist()) for piece in pieces(len(values)))


def is_ascending(values: Int64s) -> bool:
    """Whether each number is larger than the one before it."""
    return bool((values[:-1] < values[1:]).all())


def run_of(values: Int64s) -> slice | None:
    """Return the slice [first, last + 1) that whole numbers count through one by one, or None.

    >>> run_of(np.array([4, 5, 6])), run_of(np.array([4, 6])), run_of(np.array([], np.int64))
    (slice(4, 7, None), None, None)
    """
    if not len(values) or int(values[-1]) - int(values[0]) != len(values) - 1:
        return None
    first = int(values[0])
    for piece in pieces(len(values)):
        part = values[piece]
        if not np.array_equal(part, np.arange(first + piece.start, first + piece.stop)):
            return None
    return slice(first, first + len(values))


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
    if is_constant(values):
        return values[:1]
    ascending = np.sort(values)
    if len(ascending) < 2:
        return ascending
    # The first of each run of equal values.
    first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return ascending[np.flatnonzero(first)]


def groups_of(keys: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield each distinct key, ascending, and the places where it is.

    >>> [(key, places.tolist()) for key, places in groups_of(np.array([3, 1, 3]))]
    [(1, [1]), (3, [0, 2])]
    """
    if not len(keys):
        return
    least, most = int(keys.min()), int(keys.max())
    groups: Iterable[Int64s]
    if most - least < _FEW_KEYS:
        groups = map(np.flatnonzero, (keys == key for key in range(least, most + 1)))
    else:
        order = np.argsort(keys, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    yield from ((int(keys[here[0]]), here) for here in groups if len(here))


def last_not_above(ascending: Int64s, values: Int64s) -> Int64s:
    """Return the last place in `ascending` whose number is not above each value, -1 for none.

    That of a value is guessed, as if the numbers were evenly spaced, and only where that is wrong
    is it found by halving: where millions of files are alike, a fifth of the time.

    >>> last_not_above(np.array([0, 10, 10, 25]), np.array([3, 10, 99, -1])).tolist()
    [0, 2, 3, -1]
    """
    last = len(ascending) - 1
    step = (float(ascending[-1]) - float(ascending[0])) / last if last >= _MANY else 0.0
    if not step or values.size < _MANY:
        return ascending.searchsorted(values, side="right") - 1
    found = _neighbour(ascending, values, step)
    wrong = np.nonzero(~_right(ascending, values, found))
    found[wrong] = ascending.searchsorted(values[wrong], side="right") - 1
    return found


def _neighbour(ascending: Int64s, values: Int64s, step: float) -> Int64s:
    """Return guesses, put right where they are one too high or too low."""
    guesses = (values - float(ascending[0])) / step
    places = np.clip(guesses, 0, len(ascending) - 2, out=guesses).astype(np.int64)
    places += ascending[places + 1] <= values
    places -= ascending[places] > values
    return places


def _right(ascending: Int64s, values: Int64s, places: Int64s) -> NDArray[np.bool_]:
    above = np.minimum(places + 1, len(ascending) - 1)
    found: NDArray[np.bool_] = (places == above) | (ascending[above] > values)
    found &= (places < 0) | (ascending[np.maximum(places, 0)] <= values)
    return found
