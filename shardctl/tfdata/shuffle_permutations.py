"""Many shuffles of as many elements at once: what takes a step each alone takes one for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, spans
from shardctl.base.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as SAMPLES_PER_BLOCK
from shardctl.tfdata.philox import philox_rounds
from shardctl.tfdata.shuffle_buffer import (
    DEFAULT_CHUNK_SIZE,
    ShuffleReplay,
    check_buffer,
    shuffle_permutation,
)
from shardctl.tfdata.shuffle_seeds import KernelSeeds

Seeds = NDArray[np.uint64]  # [e, 2]: the pair of each shuffle

ROOM = 1 << 20  # elements of all shuffles that are worked on together
_FEWEST = 32  # shuffles from which on steps of all of them are quicker than one after the other
_PER_SHUFFLE = 64  # elements of each for which there must be one more
_LANES = 1 << 14  # blocks of Philox that stay in a cache
_WORD = np.uint64(0xFFFFFFFF)


def permutations(num_elements: int, seeds: Seeds) -> NDArray[np.int32]:
    """Return shuffles with a buffer of all elements, int32[num_elements, e]: one in each column.

    Column i is `shuffle_permutation(num_elements, num_elements, seeds[i])`. Memory is some 30 bytes
    an element, so that the caller asks for `ROOM` elements at once.

    >>> permutations(5, np.array([[87654321, 7], [0, 1]], np.uint64)).T.tolist()
    [[2, 4, 3, 0, 1], [2, 3, 0, 1, 4]]
    """
    if len(seeds) < max(_FEWEST, num_elements // _PER_SHUFFLE):
        order = np.empty((num_elements, len(seeds)), np.int32)
        for column, (seed, seed2) in enumerate(seeds.tolist()):
            one = KernelSeeds(seed=seed, seed2=seed2)
            order[:, column] = shuffle_permutation(num_elements, num_elements, one)
        return order
    return _swapped(_places(num_elements, seeds))


def shuffled_in_turn(num_elements: int, seeds: Seeds) -> NDArray[np.int64]:
    """Return those shuffles one after the other, int64[e * num_elements], in bounded memory."""
    order = np.empty((len(seeds), num_elements), np.int64)
    size = max(1, ROOM // max(num_elements, 1))
    for start in range(0, len(seeds), size):
        order[start : start + size] = permutations(num_elements, seeds[start : start + size]).T
    return order.reshape(-1)


def _swapped(places: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return what the swaps of Fisher and Yates, from the front, make of each column."""
    num_elements, count = places.shape
    order = np.empty((num_elements, count), np.int32)
    order[:] = np.arange(num_elements, dtype=np.int32)[:, None]
    flat, columns = order.reshape(-1), np.arange(count)
    at = np.empty(count, np.intp)
    for step in range(num_elements - 1):
        np.multiply(places[step], count, out=at, casting="unsafe")
        at += columns
        taken = flat[at]
        flat[at] = order[step]
        order[step] = taken
    return order


def _places(num_elements: int, seeds: Seeds) -> NDArray[np.uint32]:
    """Return the place that each step swaps with, uint32[num_elements, e]."""
    count = len(seeds)
    num_blocks = -(-num_elements // SAMPLES_PER_BLOCK)
    samples = np.empty((num_blocks, SAMPLES_PER_BLOCK, count), np.uint32)
    tile = max(1, _LANES // count)
    (key_0, key_1), (low, high) = (np.ascontiguousarray(part) for part in _words(seeds))
    room = np.empty((6, min(tile, num_blocks), count), np.uint64)
    for start, stop in spans(0, num_blocks, tile):
        words, scratch = room[:4, : stop - start], room[4:, : stop - start]
        words[0] = np.arange(start, stop, dtype=np.uint64)[:, None]
        words[1] = 0
        words[2], words[3] = low, high
        philox_rounds(words, key_0, key_1, scratch)
        for lane in range(SAMPLES_PER_BLOCK):
            samples[start:stop, lane] = words[lane]
    places = samples.reshape(-1, count)[:num_elements]
    left = np.arange(num_elements, 0, -1, dtype=np.uint32)[:, None]
    places -= places // left * left  # NumPy has no vector instructions for remainders
    places += np.arange(num_elements, dtype=np.uint32)[:, None]
    return places


def _words(seeds: Seeds) -> tuple[tuple[Seeds, Seeds], tuple[Seeds, Seeds]]:
    """Return the (low, high) words of both seeds, uint64[e] each."""
    first, second = seeds[:, 0], seeds[:, 1]
    shift = np.uint64(32)
    return (first & _WORD, first >> shift), (second & _WORD, second >> shift)


# A shuffle buffer over what can be read on: positions of its input become the codes they carry.

# An element stays longer than k buffers in a buffer with probability exp(-k): with 4, one in 55 is
# looked up by itself.
_REACH = 4
_PIECE = 1 << 20  # inputs that are read together


class Readable(Protocol):
    """What a shuffle reads: the codes of its inputs, one a position."""

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
