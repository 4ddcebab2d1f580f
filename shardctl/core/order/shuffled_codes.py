"""A shuffle buffer over a reading of files: positions of its input become the codes they carry."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.epoch_reading import EpochReading
from shardctl.core.shuffle.buffer import DEFAULT_CHUNK_SIZE, ShuffleReplay
from shardctl.core.shuffle.window import check_buffer

# An element stays longer than k buffers in a buffer with probability exp(-k): with 4, one in 55 is
# looked up by itself.
_REACH = 4
_PIECE = 1 << 20  # inputs that are read together


def shuffled_codes(
    reading: EpochReading, replay: ShuffleReplay, start: int, stop: int
) -> Iterator[Int64s]:
    """Yield the codes that come out at [start, stop), in memory for the buffer and a chunk."""
    if start >= stop:
        return
    buffer = min(replay.buffer_size, replay.num_elements)
    check_buffer(buffer)
    window = _Window(reading, reach=_REACH * buffer, start=start, room=buffer + DEFAULT_CHUNK_SIZE)
    for inputs in replay.chunks(start, stop):
        start += len(inputs)
        yield window.codes_at(inputs, min(replay.num_elements, start - 1 + buffer))


class _Window:
    """The codes of the newest inputs, `reach` of them at least; older ones are looked up."""

    def __init__(self, reading: EpochReading, *, reach: int, start: int, room: int) -> None:
        self._reading = reading
        self._reach = reach
        self._first = self._stop = max(0, start - reach)
        self._codes = np.empty(min(2 * reach + room, reading.num_examples) + 1, np.int64)

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
