"""Shuffle buffers: the order in which `tf.data.Dataset.shuffle` hands out its input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.core.shuffle.following import (
    inputs_of_places,
    outputs_of_inputs,
    reach_of_company,
    window_size,
)
from shardctl.core.shuffle.philox import philox_blocks, philox_samples
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.shuffle.window import (
    DEFAULT_CHUNK_SIZE,
    MAX_BUFFER,
    Offsets,
    ShuffleWindow,
    replayed,
)
from shardctl.core.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as PER_BLOCK
from shardctl.errors import UsageError

# An element stays in a buffer of B for k B steps with probability exp(-k). What is older than a
# replay looks back is followed, element by element; of a small buffer that hardly happens.
_SMALL = 1 << 17
_LOOKBACK_OF_SMALL, _LOOKBACK = 20, 5  # buffers

# What answers cost, in replayed steps.
_LATE = 10  # for each place of the buffer: the contents before a late start
_ROOM = 0.1  # for each place of the buffer: memory
_FOLLOWED = 0.4  # a step that is looked at
_WINDOW = 7_500  # a window of such steps
_ELEMENT = 60  # an element that is followed

_MOST_FOLLOWED = 1 << 22  # outputs at once, behind a buffer that cannot be replayed

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

        A late start costs a replay of a few buffers, not of all that came before; a short range
        none at all.

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
        wanted, where = self._wanted(outputs)
        found = np.empty(len(wanted), np.int64)
        followed, replayed = self._ways(wanted)
        found[followed] = self._followed(wanted[followed])
        for segment in replayed:
            start, stop = int(wanted[segment][0]), int(wanted[segment][-1]) + 1
            for chunk in self._replayed(start, stop, DEFAULT_CHUNK_SIZE):
                first, last = np.searchsorted(wanted, (start, start + len(chunk))).tolist()
                found[first:last] = chunk[wanted[first:last] - start]
                start += len(chunk)
        return found[where]

    def outputs_of(self, inputs: ArrayLike) -> Positions:
        """Return the output position of each input position, int64 of the same length.

        Input x comes out at x - buffer_size + 1 at the earliest; a replay stops at the last.

        Raises:
            UsageError: a position is outside the epoch.
        """
        wanted, where = self._wanted(inputs)
        found = np.empty(len(wanted), np.int64)
        followed, replayed = self._ways(wanted)
        found[followed] = outputs_of_inputs(self, wanted[followed])
        for segment in replayed:
            part, outputs = wanted[segment], found[segment]
            start, num_missing = max(0, int(part[0]) - self.buffer_size + 1), len(part)
            for chunk in self._replayed(start, self.num_elements, DEFAULT_CHUNK_SIZE):
                near = np.flatnonzero((chunk >= part[0]) & (chunk <= part[-1]))
                slots = np.searchsorted(part, chunk[near])
                hits = part[slots] == chunk[near]
                outputs[slots[hits]] = near[hits] + start
                num_missing -= int(np.count_nonzero(hits))
                start += len(chunk)
                if not num_missing:
                    break
        return found[where]

    def follows(self, start: int, stop: int) -> bool:
        """Whether outputs [start, stop) are few enough to be followed, which takes no buffer."""
        if start == stop:
            return False
        if self.num_buffered > MAX_BUFFER and stop - start > _MOST_FOLLOWED:
            return False  # so that the buffer is refused, before what is followed fills the memory
        first, last = np.array([[start], [stop - 1]])
        spans = last - first
        return bool(self._follows(first, last, spans + 1, spans, np.ones(1, np.int64))[0])

    def _wanted(self, positions: ArrayLike) -> tuple[Positions, NDArray[np.intp]]:
        """Return the distinct positions, ascending, and where each given one is among them."""
        wanted, places = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        for position in wanted[:1], wanted[-1:]:
            if position.size and not 0 <= position[0] < self.num_elements:
                raise UsageError(f"position {position[0]} of a shuffle of {self.num_elements}")
        return wanted, places

    def _ways(self, wanted: Positions) -> tuple[NDArray[np.bool_], list[slice]]:
        """Return which of distinct positions are followed, and the runs of those to replay.

        Runs are cut where a new start is cheaper than reading on.
        """
        if not len(wanted):
            return np.zeros(0, np.bool_), []
        gaps = np.diff(wanted, append=wanted[-1])
        late = _LATE * self.num_buffered + DEFAULT_CHUNK_SIZE
        starts = np.concatenate(([0], np.flatnonzero(gaps > late) + 1))
        counts = np.diff(starts, append=len(wanted))
        apart = gaps > reach_of_company(self.num_buffered)
        spans = np.add.reduceat(np.where(apart, 0, gaps), starts)
        companies = np.add.reduceat(apart.astype(np.int64), starts)
        companies[-1] += 1
        stops = starts + counts
        follows = self._follows(wanted[starts], wanted[stops - 1], counts, spans, companies)
        runs = zip(starts[~follows].tolist(), stops[~follows].tolist(), strict=True)
        return np.repeat(follows, counts), [slice(start, stop) for start, stop in runs]

    def _follows(
        self,
        first: Positions,
        last: Positions,
        counts: Positions,
        spans: Positions,
        companies: Positions,
    ) -> NDArray[np.bool_]:
        """Return whether to follow what is wanted between two positions is cheaper than a replay.

        spans: how much of it companies cover; between these nothing is looked at.
        """
        size = self.num_buffered
        each = size * (1 + np.log(counts / companies))
        looked_at = np.minimum(spans + companies * each, companies * (last + 1.0))
        follow = looked_at * _FOLLOWED + counts * _ELEMENT
        follow += spans // window_size(size) * _WINDOW
        replay = last - first + np.minimum(first, _LATE * size) + _ROOM * size
        cheaper: NDArray[np.bool_] = follow < replay
        return cheaper | (size > MAX_BUFFER)

    @property
    def num_buffered(self) -> int:
        """Number of elements in the full buffer: no more than there are."""
        return min(self.buffer_size, self.num_elements)

    def _chunks(self, start: int, stop: int, chunk_size: int) -> Iterator[Positions]:
        if not self.follows(start, stop):
            yield from self._replayed(start, stop, chunk_size)
            return
        inputs = self._followed(np.arange(start, stop))
        for first in range(0, len(inputs), chunk_size):
            yield inputs[first : first + chunk_size]

    def _followed(self, outputs: Positions) -> Positions:
        blocks, where = np.unique(outputs // PER_BLOCK, return_inverse=True)
        places = self.places(blocks)[where * PER_BLOCK + outputs % PER_BLOCK]
        return inputs_of_places(self, places, outputs)

    def _replayed(self, start: int, stop: int, chunk_size: int) -> Iterator[Positions]:
        if start == stop:
            return
        window = self._at(start)
        for chunk_start in range(start, stop, chunk_size):
            taken = window.advance(self.offsets(chunk_start, min(stop, chunk_start + chunk_size)))
            yield taken.astype(np.int64, copy=False)

    def _at(self, start: int) -> ShuffleWindow:
        """Return the buffer before step `start`, from a few earlier steps."""
        size = self.num_buffered
        lookback = size * (_LOOKBACK_OF_SMALL if size < _SMALL else _LOOKBACK)
        begin = max(0, start - lookback)
        window = ShuffleWindow(self.num_elements, size, begin)
        for chunk_start in range(begin, start, DEFAULT_CHUNK_SIZE):
            chunk_stop = min(start, chunk_start + DEFAULT_CHUNK_SIZE)
            window.advance(self.offsets(chunk_start, chunk_stop))
        if begin == 0:
            return window
        # A window that is opened midway has the numbers of its places for what was moved there.
        contents = window.contents()
        old = np.flatnonzero(contents < begin + size - 1)
        places = contents[old].astype(np.int64)
        contents[old] = inputs_of_places(self, places, np.full(len(old), begin))
        return window

    def offsets(self, start: int, stop: int) -> Offsets:
        """Return r_t mod min(B, n - t) for the steps [start, stop)."""
        samples = philox_samples(self.seeds.seed, self.seeds.seed2, start, stop - start)
        # Steps whose buffer is full; in the rest it shrinks by one a step.
        num_full = min(max(0, self.num_elements - self.num_buffered + 1 - start), len(samples))
        sizes = np.arange(self.num_elements - start - num_full, self.num_elements - stop, -1)
        return self._offsets(samples, sizes)

    def places(self, blocks: Positions) -> Positions:
        """Return t + r_t mod min(B, n - t) of the steps t in blocks of samples, int64[4 q].

        The blocks ascend. Beyond the end of the epoch the numbers mean nothing.
        """
        places = np.empty((len(blocks), PER_BLOCK), np.int64)
        for lane in range(PER_BLOCK):  # NumPy is slow along so short an axis
            np.add(blocks * PER_BLOCK, lane, out=places[:, lane])
        steps = places.reshape(-1)
        samples = philox_blocks(self.seeds.seed, self.seeds.seed2, blocks.astype(np.uint64))
        num_full = np.searchsorted(steps, self.num_elements - self.num_buffered + 1)
        sizes = np.maximum(self.num_elements - steps[num_full:], 1)
        steps += self._offsets(samples, sizes).astype(np.int64)
        return steps

    def _offsets(self, samples: NDArray[np.uint32], sizes: Positions) -> Offsets:
        """Return samples modulo the size of the buffer, the last ones modulo those `sizes`."""
        offsets: Offsets = samples
        # A sample has 32 bits, which a larger buffer's size does not fit.
        if self.num_buffered >= 1 << 32:
            offsets = samples.astype(np.uint64)
        num_full = len(offsets) - len(sizes)
        full, rest = offsets[:num_full], offsets[num_full:]
        # NumPy divides by one number with vector instructions, but takes no remainders so.
        size = offsets.dtype.type(self.num_buffered)
        full -= full // size * size
        rest %= sizes.astype(offsets.dtype)
        return offsets


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
