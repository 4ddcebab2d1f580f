"""Shuffle buffers: the order in which `tf.data.Dataset.shuffle` hands out its input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.core.shuffle.philox import philox_samples
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.shuffle.window import (
    DEFAULT_CHUNK_SIZE,
    UNKNOWN,
    Offsets,
    ShuffleWindow,
    replayed,
)
from shardctl.errors import UsageError

# An element stays in a buffer of B for k B steps with probability exp(-k), so that among 100,000
# elements one is older than 20 B once in 5,000 times.
LOOKBACK_BUFFERS = 20

Positions = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleReplay:
    """One epoch of a shuffle: which input position comes out at each output position.

    Step t of n, with a buffer of B and r_t for sample t of the stream, hands out what is at
    position p = t + r_t mod min(B, n - t) of the input and moves what is at t to p
    (tensorflow/core/kernels/data/shuffle_dataset_op.cc). A buffer larger than the input acts as
    one of its size. Replaying takes memory for the buffer and one chunk, never for the input.

    >>> seeds = KernelSeeds(seed=87654321, seed2=7)
    >>> replay = ShuffleReplay(num_elements=8, buffer_size=3, seeds=seeds)
    >>> [chunk.tolist() for chunk in replay.chunks(chunk_size=5)]
    [[0, 2, 3, 4, 5], [7, 6, 1]]

    Raises:
        UsageError: `num_elements` is below 0 or `buffer_size` below 1.
    """

    num_elements: int
    buffer_size: int
    seeds: KernelSeeds

    def __post_init__(self) -> None:
        if self.num_elements < 0:
            raise UsageError(f"{self.num_elements} elements to shuffle: at least 0 are needed")
        if self.buffer_size < 1:
            raise UsageError(f"shuffle buffer of {self.buffer_size}: at least 1 is needed")

    def chunks(
        self, start: int = 0, stop: int | None = None, *, chunk_size: int = DEFAULT_CHUNK_SIZE
    ) -> Iterator[Positions]:
        """Return the input positions of outputs [start, stop), int64, at most `chunk_size` a piece.

        A late start costs a replay of some 20 buffers, not of all that came before.

        Raises:
            UsageError: the range is not within the epoch, or `chunk_size` is below 1.
        """
        stop = self.num_elements if stop is None else stop
        if not 0 <= start <= stop <= self.num_elements:
            raise UsageError(f"outputs [{start}, {stop}) of a shuffle of {self.num_elements}")
        if chunk_size < 1:
            raise UsageError(f"chunks of {chunk_size}: at least 1 is needed")
        return self._chunks(start, stop, chunk_size)

    def num_read(self, emitted: int) -> int:
        """Return how many inputs are read once `emitted` are handed out.

        The place of the last one is refilled only at the next pull.
        """
        if not 0 <= emitted <= self.num_elements:
            raise UsageError(f"{emitted} outputs of a shuffle of {self.num_elements}")
        return min(self.num_elements, emitted - 1 + self.buffer_size) if emitted else 0

    def pending(self, emitted: int) -> Positions:
        """Return the inputs that are read but not handed out after `emitted`, ascending int64.

        >>> seeds = KernelSeeds(seed=87654321, seed2=7)
        >>> ShuffleReplay(num_elements=8, buffer_size=3, seeds=seeds).pending(4).tolist()
        [1, 5]
        """
        num_pending = self.num_read(emitted) - emitted
        if num_pending <= 0:
            return np.empty(0, np.int64)
        return np.sort(self._at(emitted).contents()[:num_pending]).astype(np.int64)

    def inputs_at(self, outputs: ArrayLike) -> Positions:
        """Return the input position of each output position, int64 of the same length.

        Raises:
            UsageError: a position is outside the epoch.
        """
        wanted, places = self._wanted(outputs)
        found = np.empty(len(wanted), np.int64)
        for segment in self._segments(wanted):
            start, stop = int(wanted[segment][0]), int(wanted[segment][-1]) + 1
            for chunk in self.chunks(start, stop):
                first, last = np.searchsorted(wanted, (start, start + len(chunk))).tolist()
                found[first:last] = chunk[wanted[first:last] - start]
                start += len(chunk)
        return found[places]

    def outputs_of(self, inputs: ArrayLike) -> Positions:
        """Return the output position of each input position, int64 of the same length.

        Input x comes out at x - buffer_size + 1 at the earliest; the replay stops at the last.

        Raises:
            UsageError: a position is outside the epoch.
        """
        wanted, places = self._wanted(inputs)
        found = np.empty(len(wanted), np.int64)
        for segment in self._segments(wanted):
            part, outputs = wanted[segment], found[segment]
            start, num_missing = max(0, int(part[0]) - self.buffer_size + 1), len(part)
            for chunk in self.chunks(start):
                near = np.flatnonzero((chunk >= part[0]) & (chunk <= part[-1]))
                slots = np.searchsorted(part, chunk[near])
                hits = part[slots] == chunk[near]
                outputs[slots[hits]] = near[hits] + start
                num_missing -= int(np.count_nonzero(hits))
                start += len(chunk)
                if not num_missing:
                    break
        return found[places]

    def _wanted(self, positions: ArrayLike) -> tuple[Positions, NDArray[np.intp]]:
        """Return the distinct positions, ascending, and where each given one is among them."""
        wanted, places = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        for position in wanted[:1], wanted[-1:]:
            if position.size and not 0 <= position[0] < self.num_elements:
                raise UsageError(f"position {position[0]} of a shuffle of {self.num_elements}")
        return wanted, places

    def _segments(self, wanted: Positions) -> Iterator[slice]:
        """Yield runs of positions, cut where a new start is cheaper than reading on."""
        reach = LOOKBACK_BUFFERS * self.num_buffered + DEFAULT_CHUNK_SIZE
        cuts = [0, *(np.flatnonzero(np.diff(wanted) > reach) + 1).tolist(), len(wanted)]
        for first, last in pairwise(cuts):
            if first < last:
                yield slice(first, last)

    @property
    def num_buffered(self) -> int:
        """Number of elements in the full buffer: no more than there are."""
        return min(self.buffer_size, self.num_elements)

    def _chunks(self, start: int, stop: int, chunk_size: int) -> Iterator[Positions]:
        if start == stop:
            return
        window = self._at(start)
        for chunk_start in range(start, stop, chunk_size):
            taken = window.advance(self.offsets(chunk_start, min(stop, chunk_start + chunk_size)))
            yield taken.astype(np.int64, copy=False)

    def _at(self, start: int) -> ShuffleWindow:
        """Return the buffer before step `start`, from as few earlier steps as determine it."""
        lookback = LOOKBACK_BUFFERS * self.num_buffered
        while True:
            begin = max(0, start - lookback)
            window = ShuffleWindow(self.num_elements, self.num_buffered, begin)
            for chunk_start in range(begin, start, DEFAULT_CHUNK_SIZE):
                chunk_stop = min(start, chunk_start + DEFAULT_CHUNK_SIZE)
                window.advance(self.offsets(chunk_start, chunk_stop))
            if UNKNOWN not in window.contents():
                return window
            lookback *= 2

    def offsets(self, start: int, stop: int) -> Offsets:
        """Return r_t mod min(B, n - t) for the steps [start, stop)."""
        samples: Offsets
        samples = philox_samples(self.seeds.seed, self.seeds.seed2, start, stop - start)
        # A sample has 32 bits, which a larger buffer's size does not fit.
        if self.num_buffered >= 1 << 32:
            samples = samples.astype(np.uint64)
        # Steps whose buffer is full; in the rest it shrinks by one a step.
        num_full = min(max(0, self.num_elements - self.num_buffered + 1 - start), len(samples))
        full, rest = samples[:num_full], samples[num_full:]
        # NumPy divides by one number with vector instructions, but takes no remainders so.
        size = samples.dtype.type(self.num_buffered)
        full -= full // size * size
        rest %= np.arange(
            self.num_elements - start - num_full, self.num_elements - stop, -1
        ).astype(samples.dtype)
        return samples


def shuffle_permutation(
    num_elements: int, buffer_size: int, seeds: KernelSeeds
) -> NDArray[np.int64]:
    """Return the input positions in the order they come out, shape (num_elements,), int64.

    >>> shuffle_permutation(8, 3, KernelSeeds(seed=87654321, seed2=7)).tolist()
    [0, 2, 3, 4, 5, 7, 6, 1]
    """
    replay = ShuffleReplay(num_elements=num_elements, buffer_size=buffer_size, seeds=seeds)
    order = replayed(num_elements, replay.num_buffered, replay.offsets)
    return order.astype(np.int64, copy=False)
