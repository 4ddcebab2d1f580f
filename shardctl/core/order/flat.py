"""The elements of an iteration as a row of examples: positions there, and elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.iteration.iteration import EVERYTHING, Iteration

_PIECE = 1 << 14  # elements between two whose first position is kept
_NONE = np.empty(0, np.int64)


class Flat:
    """Which element of an iteration a position is in, where batches are taken apart.

    An iteration without end is pulled as far as it is asked about.

    >>> from shardctl.core.iteration.source import Source
    >>> flat = Flat(Source(range(10, 15)).iterate(), is_endless=False)
    >>> flat.num_examples, flat.places(np.array([3]))[0].tolist()
    (5, [3])
    """

    def __init__(self, iteration: Iteration, *, is_endless: bool) -> None:
        self.iteration = iteration
        self.is_endless = is_endless
        # The position at which every _PIECE-th element begins, and where the last one ends.
        self._starts = [0]
        self._num_summed = 0
        if not is_endless:
            iteration.pull(EVERYTHING)

    @property
    def num_elements(self) -> int:
        """Number of elements pulled so far: all of them where there is an end."""
        return self.iteration.pulled

    @property
    def num_examples(self) -> int:
        """Number of examples in what was pulled so far."""
        return self._end_of(self.num_elements)

    def reach(self, stop: int) -> None:
        """Pull until there are so many examples, or until the end."""
        iteration = self.iteration
        while not iteration.ended and self.num_examples < stop:
            iteration.pull(max(1, min(stop - self.num_examples, stop // (iteration.width or 1))))

    def elements(self, start: int, stop: int) -> tuple[range, int]:
        """Return the elements in which positions [start, stop) are, and where the first begins."""
        first, inner = (int(each[0]) for each in self.places(np.array([start])))
        last = int(self.places(np.array([stop - 1]))[0][0])
        return range(first, last + 1), start - inner

    def places(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (element, index of the example in it), int64[q] each."""
        width = self.iteration.width
        if width is not None:
            return positions // width, positions % width
        self._sum_to(self.num_elements)
        starts = np.asarray(self._starts, np.int64)
        pieces = np.minimum(
            np.searchsorted(starts, positions, side="right") - 1, len(starts) - 2
        )
        elements, indices = np.empty_like(positions), np.empty_like(positions)
        for piece, here in _groups(pieces):
            begins = self._begins(piece)
            # The last of several that begin at one place is the one that is not empty.
            inside = np.searchsorted(begins, positions[here], side="right") - 1
            elements[here] = inside + piece * _PIECE
            indices[here] = positions[here] - begins[inside]
        return elements, indices

    def begins(self, elements: Int64s) -> Int64s:
        """Return the position at which each element begins, int64[q]; one past the last as well."""
        width = self.iteration.width
        if width is not None:
            return elements * width
        self._sum_to(self.num_elements)
        found = np.empty_like(elements)
        for piece, here in _groups(elements // _PIECE):
            if piece * _PIECE >= self.num_elements:
                found[here] = self._starts[-1]
                continue
            begins = np.append(self._begins(piece), self._starts[piece + 1])
            found[here] = begins[elements[here] - piece * _PIECE]
        return found

    def _begins(self, piece: int) -> Int64s:
        elements = np.arange(piece * _PIECE, min((piece + 1) * _PIECE, self._num_summed))
        widths = self.iteration.widths(elements)
        return np.cumsum(widths) - widths + self._starts[piece]

    def _end_of(self, count: int) -> int:
        width = self.iteration.width
        if width is not None:
            return count * width
        self._sum_to(count)
        return self._starts[-1]

    def _sum_to(self, count: int) -> None:
        """Sum widths up to an element; the last piece is summed again when there are more."""
        if self._num_summed == count:
            return
        first = self._num_summed // _PIECE
        del self._starts[first + 1 :]
        for begin in range(first * _PIECE, count, _PIECE):
            elements = np.arange(begin, min(begin + _PIECE, count))
            self._starts.append(self._starts[-1] + int(self.iteration.widths(elements).sum()))
        self._num_summed = count


def _groups(numbers: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield each number and where it is, int64[r]."""
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    for here in np.split(order, cuts) if len(order) else ():
        yield int(numbers[here[0]]), here
