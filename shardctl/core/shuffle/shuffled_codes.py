"""A shuffle buffer over what can be read on: positions of its input become the codes they carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.core.shuffle.window import DEFAULT_CHUNK_SIZE, check_buffer

# An element stays longer than k buffers in a buffer with probability exp(-k): with 4, one in 55 is
# looked up by itself.
_REACH = 4
_PIECE = 1 << 20  # inputs that are read together


class Readable(Protocol):
    """What a shuffle reads: the codes of its inputs, one a position, or a row of them."""

    @property
    def num_examples(self) -> int:
        """The number of positions."""

    def codes(self, start: int, stop: int) -> Int64s:
        """Return the codes at positions [start, stop)."""

    def codes_at(self, positions: Int64s) -> Int64s:
        """Return the codes at any positions."""


def shuffled_codes(
    reading: Readable, replay: ShuffleReplay, start: int, stop: int, *, reach: int | None = None
) -> Iterator[Int64s]:
    """Yield the codes that come out at [start, stop), in memory for the buffer and a chunk.

    reach: of how many inputs before the newest the codes are kept; older ones are looked up.
    """
    if start >= stop:
        return
    if replay.follows(start, stop):
        for inputs in replay.chunks(start, stop):
            yield reading.codes_at(inputs)
        return
    buffer = replay.num_buffered
    check_buffer(buffer)
    reach = _REACH * buffer if reach is None else reach
    window = _Window(reading, reach=reach, start=start, room=buffer + DEFAULT_CHUNK_SIZE)
    for inputs in replay.chunks(start, stop):
        start += len(inputs)
        yield window.codes_at(inputs, min(replay.num_elements, start - 1 + buffer))


class _Window:
    """The codes of the newest inputs, `reach` of them at least; older ones are looked up."""

    def __init__(self, reading: Readable, *, reach: int, start: int, room: int) -> None:
        self._reading = reading
        self._reach = reach
        self._first = self._stop = max(0, start - reach)
        size = min(2 * reach + room, reading.num_examples) + 1
        # Where an input is a row of codes, so is a place of the window.
        row = reading.codes(self._first, self._first).shape[1:]
        self._codes = np.empty((size, *row), np.int64)

    def codes_at(self, inputs: Int64s, stop: int) -> Int64s:
        """Return the codes of `inputs`, all of them below `stop`, after reading that far."""
        self._read_to(stop)
        places = inputs - self._first
        old = np.flatnonzero(places < 0)
        places[old] = 0  # any place in the window, their codes are replaced
        codes = self._codes[places]
        if old.size:
            codes[old] = self._reading.codes_at(inputs[old])
        return codes

    def _read_to(self, stop: int) -> None:
        if stop - self._first > len(self._codes):
            # Room is made by moving the newest codes to the front; the two ranges may overlap.
            held = self._stop - self._first
            kept = min(self._reach, held)
            self._codes[:kept] = self._codes[held - kept : held].copy()
            self._first = self._stop - kept
        while self._stop < stop:  # in pieces, between which an interrupt is heard
            end = min(stop, self._stop + _PIECE)
            place = self._stop - self._first
            self._codes[place : place + end - self._stop] = self._reading.codes(self._stop, end)
            self._stop = end
