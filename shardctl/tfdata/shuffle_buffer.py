"""Shuffle buffers: the order in which `tf.data.Dataset.shuffle` hands out its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.base.arrays import Int64s, spans
from shardctl.base.progress import Progress
from shardctl.base.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as PER_BLOCK
from shardctl.errors import UsageError
from shardctl.tfdata.philox import philox_blocks, philox_rounds, philox_samples
from shardctl.tfdata.shuffle_seeds import KernelSeeds

# The window a shuffle works in: the inputs in its buffer, and those that follow unmoved.

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
    for start, stop in spans(0, num_elements, DEFAULT_CHUNK_SIZE):
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
        return np.sort(self.buffered(emitted))

    def buffered(self, emitted: int) -> Positions:
        """Return what `pending` does, in the order of the buffer's places, from its first on.

        Fed with them, and then with the inputs that follow, a new buffer is as this one was.
        """
        num_pending = self.num_read(emitted) - emitted
        if num_pending <= 0:
            return np.empty(0, np.int64)
        return self._at(emitted).contents()[:num_pending].astype(np.int64)

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
        return bool(self._follows(first, last, last - first + 1)[0])

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
        late = _LATE * self.num_buffered + DEFAULT_CHUNK_SIZE
        starts = np.concatenate(([0], np.flatnonzero(np.diff(wanted) > late) + 1))
        counts = np.diff(starts, append=len(wanted))
        stops = starts + counts
        follows = self._follows(wanted[starts], wanted[stops - 1], counts)
        runs = zip(starts[~follows].tolist(), stops[~follows].tolist(), strict=True)
        return np.repeat(follows, counts), [slice(start, stop) for start, stop in runs]

    def _follows(self, first: Positions, last: Positions, counts: Positions) -> NDArray[np.bool_]:
        """Return whether to follow `counts` elements between positions is cheaper than a replay."""
        size = self.num_buffered
        drawn = num_drawn(size, last - first, counts)
        # Windows of runs that lie apart are drawn together, so that these share what one costs.
        window = window_size(size) * min(len(first), max(1, _AT_ONCE // window_size(size)))
        follow = drawn * (_FOLLOWED + _WINDOW / window) + counts * _ELEMENT
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
        for span in spans(start, stop, chunk_size):
            taken = window.advance(self.offsets(*span))
            yield taken.astype(np.int64, copy=False)

    def _at(self, start: int) -> ShuffleWindow:
        """Return the buffer before step `start`, from a few earlier steps."""
        size = self.num_buffered
        lookback = size * (_LOOKBACK_OF_SMALL if size < _SMALL else _LOOKBACK)
        begin = max(0, start - lookback)
        window = ShuffleWindow(self.num_elements, size, begin)
        for span in spans(begin, start, DEFAULT_CHUNK_SIZE):
            window.advance(self.offsets(*span))
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


# Elements followed through a shuffle one by one, without the buffer that they go through.
#
# What is handed out at a step depends on the few earlier ones that moved it, and where an input
# comes out on the few later ones that move it. To find them takes a look at the random numbers of
# about as many steps as the buffer has places, a window of them at a time.

_WINDOW_SIZES = 1 << 8, 1 << 17
_AT_ONCE = 1 << 18  # steps of windows that lie apart, which are drawn together
_STEPS_PER_SECOND = 50_000_000
_TABLE = 1 << 16, 1 << 24  # places marked by their low bits: a filter before the exact look


def window_size(num_buffered: int) -> int:
    """Return how many steps are drawn at once."""
    return min(max(num_buffered, _WINDOW_SIZES[0]), _WINDOW_SIZES[1])


def num_drawn(num_buffered: int, span: Int64s | int, counts: Int64s | int) -> NDArray[np.float64]:
    """Return about how many steps are drawn for `counts` elements that lie within a span."""
    together = span + num_buffered * (1 + np.log(np.maximum(counts, 1)))
    alone = counts * (num_buffered + 1.0 * window_size(num_buffered))
    least: NDArray[np.float64] = np.minimum(together, alone)
    return least


def inputs_of_places(steps: ShuffleReplay, places: Int64s, before: Int64s) -> Int64s:
    """Return the input that is at each place before the given step, int64[q].

    A place is written by the last step s that took from it, with what was at place s before.
    """
    found, heads = places.copy(), before.copy()
    reach = steps.num_buffered - 1
    progress = _progress(steps, before)
    while (left := np.flatnonzero(heads > np.maximum(found - reach, 0))).size:
        rows, which, windows = _windows(steps, heads[left], backwards=True)
        rows = left[rows]
        progress.advance(len(windows.places))
        while rows.size:
            written = windows.last(found[rows], which, heads[rows])
            heads[rows] = windows.starts[which]
            known = written >= 0
            rows, which = rows[known], which[known]
            heads[rows] = found[rows] = written[known]
    return found


def outputs_of_inputs(steps: ShuffleReplay, inputs: Int64s) -> Int64s:
    """Return the step that yields each input, int64[q].

    An input stays at its place until a step takes it from there or, at its place, moves it on.
    """
    places, heads = inputs.copy(), np.maximum(inputs - steps.num_buffered + 1, 0)
    outputs = np.full(len(inputs), -1, np.int64)
    progress = _progress(steps, heads)
    while (left := np.flatnonzero(outputs < 0)).size:
        rows, which, windows = _windows(steps, heads[left], backwards=False)
        rows = left[rows]
        progress.advance(len(windows.places))
        while rows.size:
            outputs[rows] = taken = windows.first(places[rows], which, heads[rows])
            stops = windows.stops[which]
            heads[rows] = np.minimum(stops, places[rows] + 1)
            moved = (taken < 0) & (heads[rows] > places[rows])
            rows, which, stops = rows[moved], which[moved], stops[moved]
            places[rows] = windows.places[places[rows] + windows.shifts[which]]
            rows, which = rows[heads[rows] < stops], which[heads[rows] < stops]
    return outputs


def _progress(steps: ShuffleReplay, heads: Int64s) -> Progress:
    """Return a progress of about as many steps as elements look at from there on."""
    total = num_drawn(steps.num_buffered, int(np.ptp(heads)) if len(heads) else 0, len(heads))
    return Progress(
        "steps of the shuffle",
        int(total),
        per_second=_STEPS_PER_SECOND,
        instead="give a smaller --buffer",
    )


def _windows(
    steps: ShuffleReplay, heads: Int64s, *, backwards: bool
) -> tuple[Int64s, Int64s, _Windows]:
    """Return which elements go on now, the window of each, and these windows.

    An element waits where another is behind it and near: its steps are drawn once for both. Those
    that are far from one another go on together, since a call of NumPy costs more than their steps.
    """
    size = window_size(steps.num_buffered)
    heads = -heads if backwards else heads
    rows = np.argsort(heads, kind="stable")
    ahead = heads[rows]
    far = max(size, steps.num_buffered) + PER_BLOCK  # no step there takes from a place here
    begins = np.concatenate(([True], np.diff(ahead) > far))
    which, firsts = np.cumsum(begins) - 1, ahead[begins][: max(1, _AT_ONCE // size)]
    rows, which, ahead = (of[: np.searchsorted(which, len(firsts))] for of in (rows, which, ahead))
    now = np.flatnonzero(ahead - firsts[which] < size)
    rows, which = rows[now], which[now]
    if backwards:
        stops = -firsts[::-1]
        return rows, len(firsts) - 1 - which, _Windows(steps, np.maximum(stops - size, 0), stops)
    return rows, which, _Windows(steps, firsts, np.minimum(firsts + size, steps.num_elements))


class _Windows:
    """The steps [starts, stops) of windows that lie apart, and the places that they take from.

    The places are in rows, whole blocks of random numbers; a step's row is the step plus `shifts`.
    """

    def __init__(self, steps: ShuffleReplay, starts: Int64s, stops: Int64s) -> None:
        self.starts, self.stops = starts, stops
        first, lengths = starts // PER_BLOCK, -(-stops // PER_BLOCK) - starts // PER_BLOCK
        before = np.cumsum(lengths) - lengths - first
        self.shifts = before * PER_BLOCK
        blocks = np.arange(int(lengths.sum())) - np.repeat(before, lengths)
        self.places = steps.places(blocks)

    def last(self, places: Int64s, which: Int64s, before: Int64s) -> Int64s:
        """Return the last step before another that takes from a place, int64[q], -1 for none."""
        keys, lowest = self._keys(places)
        lowest += self.shifts[which]
        at = np.searchsorted(keys, lowest + before) - 1
        found: Int64s = np.where(at >= 0, keys[at] - lowest, -1)
        return np.where(found >= self.starts[which], found, -1)

    def first(self, places: Int64s, which: Int64s, after: Int64s) -> Int64s:
        """Return the first step from one on that takes from a place, int64[q], -1 for none."""
        keys, lowest = self._keys(places)
        lowest += self.shifts[which]
        found = keys[np.searchsorted(keys[:-1], lowest + after)] - lowest
        return np.where(found < self.stops[which], found, -1)

    def _keys(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return keys of the steps that take from the places, ascending, and the least of each.

        A key is (which place, row); behind the last is one that is above all.
        """
        size = min(max(_TABLE[0], 1 << (16 * len(places)).bit_length()), _TABLE[1])
        marked = np.zeros(size, np.bool_)
        marked[places & (size - 1)] = True
        near = np.flatnonzero(marked[self.places & (size - 1)])
        known, which = np.unique(places, return_inverse=True)
        slots = np.searchsorted(known[:-1], self.places[near])
        hits = np.flatnonzero(known[slots] == self.places[near])
        count = len(self.places)
        keys = np.sort(slots[hits] * count + near[hits])
        return np.append(keys, len(known) * count), which * count


# Many shuffles of as many elements at once: what takes a step each alone takes one for all.

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
    num_blocks = -(-num_elements // PER_BLOCK)
    samples = np.empty((num_blocks, PER_BLOCK, count), np.uint32)
    tile = max(1, _LANES // count)
    (key_0, key_1), (low, high) = (np.ascontiguousarray(part) for part in _words(seeds))
    room = np.empty((6, min(tile, num_blocks), count), np.uint64)
    for start, stop in spans(0, num_blocks, tile):
        words, scratch = room[:4, : stop - start], room[4:, : stop - start]
        words[0] = np.arange(start, stop, dtype=np.uint64)[:, None]
        words[1] = 0
        words[2], words[3] = low, high
        philox_rounds(words, key_0, key_1, scratch)
        for lane in range(PER_BLOCK):
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
    newest = _Newest(reading, reach=reach, start=start, room=buffer + DEFAULT_CHUNK_SIZE)
    for inputs in replay.chunks(start, stop):
        start += len(inputs)
        yield newest.codes_at(inputs, min(replay.num_elements, start - 1 + buffer))


class _Newest:
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
