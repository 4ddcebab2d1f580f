"""Elements followed through a shuffle one by one, without the buffer that they go through.

What is handed out at a step depends on the few earlier ones that moved it, and where an input
comes out on the few later ones that move it. To find them takes a look at the random numbers of
about as many steps as the buffer has places, and memory for a piece of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as PER_BLOCK

_PIECE = 1 << 17  # steps drawn at once, at most about twice as many
_LEAST = 1 << 8  # steps of a window, so that a small buffer's are not looked at one by one
_WINDOWS = 8  # in a buffer: of what is drawn for a window, half is wasted once
_STEPS_PER_SECOND = 50_000_000
_TABLE = 1 << 16, 1 << 24  # places marked by their low bits: a filter before the exact look


class Steps(Protocol):
    """A shuffle: where each of its steps takes what it hands out."""

    @property
    def num_elements(self) -> int:
        """Number of steps."""

    @property
    def num_buffered(self) -> int:
        """Number of elements in the full buffer: no more than there are."""

    def places(self, blocks: Int64s) -> Int64s:
        """Return p = t + r_t of the steps t in blocks of Philox, int64[4 q]; beyond the end any."""


def window_size(num_buffered: int) -> int:
    """Return how many steps of each element are looked at in turn."""
    return min(max(num_buffered // _WINDOWS, _LEAST), _PIECE)


def reach_of_company(num_buffered: int) -> int:
    """Return up to which distance elements wait for one another, so that steps are drawn once.

    Where a window has few steps, to wait costs more than to draw anew.
    """
    window = window_size(num_buffered)
    return max(window, num_buffered) if window > _PIECE // 8 else window


def inputs_of_places(steps: Steps, places: Int64s, before: Int64s) -> Int64s:
    """Return the input that is at each place before the given step, int64[q].

    A place is written by the last step s that took from it, with what was at place s before.
    """
    found, heads = places.copy(), before.copy()
    window, reach = window_size(steps.num_buffered), steps.num_buffered - 1
    progress = _progress(steps, before)
    left = np.flatnonzero(heads > np.maximum(found - reach, 0))
    while left.size:
        # Counted backwards, so that what comes next is more in both directions.
        for turn, frontier in _turns(-heads[left], 0, window, steps.num_buffered):
            rows, first = left[turn], -frontier
            drawn = _Drawn(steps, first, heads[rows])
            progress.advance(len(drawn.places))
            while rows.size:
                written = drawn.last(found[rows], first, heads[rows])
                again = np.flatnonzero(written >= 0)
                heads[rows] = first
                rows, first = rows[again], first[again]
                heads[rows] = found[rows] = written[again]
                again = np.flatnonzero(heads[rows] > first)
                rows, first = rows[again], first[again]
        left = left[heads[left] > np.maximum(found[left] - reach, 0)]
    return found


def outputs_of_inputs(steps: Steps, inputs: Int64s) -> Int64s:
    """Return the step that hands out each input, int64[q].

    An input stays at its place until a step takes it from there or, at its place, moves it on.
    """
    places, heads = inputs.copy(), np.maximum(inputs - steps.num_buffered + 1, 0)
    window = window_size(steps.num_buffered)
    outputs = np.full(len(inputs), -1, np.int64)
    progress = _progress(steps, heads)
    left = np.arange(len(inputs))
    while left.size:
        for turn, frontier in _turns(heads[left], steps.num_elements, window, steps.num_buffered):
            rows, stop = left[turn], frontier
            drawn = _Drawn(steps, heads[rows], stop)
            progress.advance(len(drawn.places))
            while rows.size:
                end = np.minimum(stop, places[rows] + 1)
                taken = drawn.first(places[rows], heads[rows], end)
                outputs[rows], heads[rows] = taken, end
                moved = np.flatnonzero((taken < 0) & (end > places[rows]))
                rows, stop = rows[moved], stop[moved]
                places[rows] = drawn.place_of(places[rows])
                on = np.flatnonzero(heads[rows] < stop)
                rows, stop = rows[on], stop[on]
        left = left[outputs[left] < 0]
    return outputs


def _progress(steps: Steps, heads: Int64s) -> Progress:
    """Return a progress of about as many steps as elements look at from there on."""
    size, ascending = steps.num_buffered, np.sort(heads)
    num_apart = int(np.count_nonzero(np.diff(ascending) > reach_of_company(size)))
    span = int(ascending[-1] - ascending[0]) if len(heads) and not num_apart else 0
    return Progress(
        None,
        "steps of the shuffle",
        span + int((num_apart + 1) * size * (1 + np.log(max(1, len(heads) / (num_apart + 1))))),
        per_second=_STEPS_PER_SECOND,
        instead=phrase("give a smaller {buffer}"),
    )


def _turns(
    heads: Int64s, end: int, window: int, num_buffered: int
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield which elements go on together, and up to where each of them.

    Of those in company the last one behind goes first; what it passes goes along.
    """
    in_order = np.argsort(heads, kind="stable")
    ahead = heads[in_order]
    starts = np.concatenate(([True], np.diff(ahead) > reach_of_company(num_buffered)))
    behind = ahead[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    up_to = behind + np.minimum(window, end - behind)
    turn = np.flatnonzero(ahead < up_to)
    in_order, ahead, up_to = in_order[turn], ahead[turn], up_to[turn]
    passed = np.concatenate((ahead[:1], up_to[:-1]))
    piece = np.cumsum(up_to - np.maximum(ahead, passed)) // _PIECE
    cuts = np.flatnonzero(np.diff(piece)) + 1
    yield from zip(np.split(in_order, cuts), np.split(up_to, cuts), strict=True)


class _Drawn:
    """The steps of several ranges, [starts, stops) each, and the places that they take from."""

    def __init__(self, steps: Steps, starts: Int64s, stops: Int64s) -> None:
        first, end = _joined(starts // PER_BLOCK, (stops - 1) // PER_BLOCK + 1)
        self.places = steps.places(_in_ranges(first, end))
        self._starts = first * PER_BLOCK
        self._rows = (np.cumsum(end - first) - (end - first)) * PER_BLOCK

    def place_of(self, steps: Int64s) -> Int64s:
        """Return the places that steps take from, int64[q]."""
        return self.places[self._rows_of(steps)]

    def last(self, places: Int64s, starts: Int64s, stops: Int64s) -> Int64s:
        """Return the last step in each range that takes from a place, int64[q], -1 for none."""
        keys, lowest, above = self._keys(places, starts, stops)
        at = np.searchsorted(keys, above) - 1
        return self._steps_of(keys[at], (at >= 0) & (keys[at] >= lowest))

    def first(self, places: Int64s, starts: Int64s, stops: Int64s) -> Int64s:
        """Return the first step in each range that takes from a place, int64[q], -1 for none."""
        keys, lowest, above = self._keys(places, starts, stops)
        at = np.searchsorted(keys[:-1], lowest)
        return self._steps_of(keys[at], keys[at] < above)

    def _keys(self, places: Int64s, starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return sorted keys of the steps that take from the places, and between which to look.

        A key is (which place, row); behind the last is one that is above all.
        """
        first = self._rows_of(starts)
        end = first + stops - starts
        known, which = np.unique(places, return_inverse=True)
        rows = self._near(places, first, end)
        taken = self.places[rows]
        slots = np.searchsorted(known[:-1], taken)
        hits = np.flatnonzero(known[slots] == taken)
        size = len(self.places)
        keys = np.sort(slots[hits] * size + rows[hits])
        return np.append(keys, len(known) * size), which * size + first, which * size + end

    def _near(self, places: Int64s, first: Int64s, end: Int64s) -> Int64s:
        """Return rows, int64[r]: those that take from one of the places, and a few others."""
        size = min(max(_TABLE[0], 1 << (16 * len(places)).bit_length()), _TABLE[1])
        marked = np.zeros(size, np.bool_)
        marked[places & (size - 1)] = True
        # What is left of a few windows is looked at alone.
        if int((end - first).sum()) * 2 < len(self.places):
            rows = _in_ranges(*_joined(first, end))
            near: Int64s = rows[marked[self.places[rows] & (size - 1)]]
            return near
        return np.flatnonzero(marked[self.places & (size - 1)])

    def _rows_of(self, steps: Int64s) -> Int64s:
        which = np.searchsorted(self._starts, steps, side="right") - 1
        rows: Int64s = steps + (self._rows - self._starts)[which]
        return rows

    def _steps_of(self, keys: Int64s, known: NDArray[np.bool_]) -> Int64s:
        rows = np.where(known, keys, 0) % len(self.places)
        which = np.searchsorted(self._rows, rows, side="right") - 1
        steps: Int64s = np.where(known, rows + (self._starts - self._rows)[which], -1)
        return steps


def _joined(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
    """Return what ranges cover, as ranges that are apart, ascending."""
    in_order = np.argsort(starts, kind="stable")
    starts, reached = starts[in_order], np.maximum.accumulate(stops[in_order])
    apart = np.flatnonzero(starts[1:] > reached[:-1])
    return (
        starts[np.concatenate(([0], apart + 1))],
        reached[np.concatenate((apart, [len(reached) - 1]))],
    )


def _in_ranges(starts: Int64s, stops: Int64s) -> Int64s:
    """Return all numbers in ranges, one range after the other."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    numbers = np.repeat(starts - ends + lengths, lengths)
    numbers += np.arange(len(numbers))
    return numbers
