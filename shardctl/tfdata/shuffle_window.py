"""The window a shuffle works in: the inputs in its buffer, and those that follow unmoved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shardctl.errors import UsageError

_NONE = -1

# The arrays of a chunk of 32,768 steps take 256 KiB each and stay in cache.
DEFAULT_CHUNK_SIZE = 1 << 15

MAX_BUFFER = 1 << 27  # examples of a buffer that is replayed
_BYTES = 90  # of memory an example: the window, and the codes of what was read of late

Contents = NDArray[np.signedinteger]
Offsets = NDArray[np.unsignedinteger]


def check_buffer(size: int) -> None:
    """Refuse a buffer that takes more memory than a program should take unasked.

    Raises:
        UsageError: it has more than `MAX_BUFFER` examples.
    """
    if size > MAX_BUFFER:
        raise UsageError(
            f"a shuffle buffer of {size:,} examples takes about {size * _BYTES // 10**9:,} GB to "
            f"replay, and more than {MAX_BUFFER:,} examples are refused; give a smaller --buffer"
        )


class ShuffleWindow:
    """The inputs at the positions from the current step on; those beyond the buffer unmoved.

    Opened midway, at step `begin`, what is at the first buffer_size - 1 positions was moved there
    before: it goes by the number of its position, until that is looked up.
    """

    def __init__(self, num_elements: int, buffer_size: int, begin: int) -> None:
        self._num_elements, self._buffer_size, self._position = num_elements, buffer_size, begin
        self._contents: Contents = np.empty(0, np.int32 if num_elements < 1 << 31 else np.int64)
        self._latest = np.empty(0, np.intp)
        check_buffer(buffer_size)
        self._reserve(0)

    def contents(self) -> Contents:
        """Return the contents of the buffer, in the order of its positions."""
        return self._contents[: self._buffer_size]

    def advance(self, offsets: Offsets) -> Contents:
        """Return what the next len(offsets) steps hand out."""
        num_steps = len(offsets)
        self._reserve(num_steps)
        steps = np.arange(num_steps)
        taken = _swap(self._contents, self._latest, steps, steps + offsets.astype(np.intp))
        self._contents = self._contents[num_steps:]
        self._position += num_steps
        return taken

    def _reserve(self, num_steps: int) -> None:
        """Make room for the buffers of `num_steps` steps."""
        left = self._num_elements - self._position
        needed = min(left, num_steps + self._buffer_size)
        if len(self._latest) < needed:
            self._latest = np.empty(needed, np.intp)
        if len(self._contents) < needed:
            # Half a buffer to spare, so that big buffers are not copied at each chunk.
            size = min(left, needed + num_steps + self._buffer_size // 2)
            known = self._position + len(self._contents)
            unmoved = np.arange(known, self._position + size, dtype=self._contents.dtype)
            self._contents = np.concatenate((self._contents, unmoved))


def replayed(
    num_elements: int, buffer_size: int, offsets: Callable[[int, int], Offsets]
) -> Contents:
    """Return what all steps hand out, shape (num_elements,), of as many bytes as they need.

    `offsets(start, stop)` returns how far from its own place each of those steps takes one. With a
    buffer of all elements these are the swaps of Fisher and Yates, from the front.

    >>> replayed(4, 4, lambda start, stop: np.array([2, 0, 1, 0], np.uint32)[start:stop]).tolist()
    [2, 1, 3, 0]
    """
    window = ShuffleWindow(num_elements, buffer_size, 0)
    order = np.empty(num_elements, window.contents().dtype)
    for start in range(0, num_elements, DEFAULT_CHUNK_SIZE):
        stop = min(num_elements, start + DEFAULT_CHUNK_SIZE)
        order[start:stop] = window.advance(offsets(start, stop))
    return order


def _swap(
    contents: Contents, latest: NDArray[np.intp], steps: NDArray[np.intp], places: NDArray[np.intp]
) -> Contents:
    """Run `taken[t] = contents[places[t]]; contents[places[t]] = contents[t]` for all steps t.

    Steps count from 0 and t <= places[t]. `latest` is scratch that covers all places. In place of
    a loop over the steps, those that touch one place are chained.
    """
    # NumPy leaves the last of several writes to one place: the latest step that moved there.
    latest[: len(steps)] = steps
    latest[places] = steps
    filled_by = latest[: len(steps)].copy()
    # Round by round, the latest step that remains at a place precedes the one found before it.
    previous = np.full(len(steps), _NONE, np.intp)
    remaining, later = steps, latest[places]
    while (kept := np.flatnonzero(later != remaining)).size:
        remaining, later = remaining[kept], later[kept]
        previous[later] = remaining
        later = previous[later]
    # A step that stays at its place moves nothing; what it finds, an earlier one moved there.
    staying = np.flatnonzero(places == steps)
    filled_by[staying] = np.where(previous[staying] < 0, staying, previous[staying])
    # Pointer doubling: what step t moves was at place origin[t] to begin with.
    origin, active = filled_by, steps
    while active.size:
        further = origin[origin[active]]
        moved_on = np.flatnonzero(further != origin[active])
        origin[active] = further
        active = active[moved_on]
    moved = contents[origin]
    taken = contents[places]
    again = np.flatnonzero(previous >= 0)
    taken[again] = moved[previous[again]]
    contents[places] = moved
    return taken
