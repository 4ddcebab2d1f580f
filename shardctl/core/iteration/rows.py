"""The elements of an iteration as rows of codes, which a shuffle above it reads on and looks up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.iteration.iteration import Iteration

# No example has it: what fills the rows of elements with fewer examples than others.
FILLER = np.iinfo(np.int64).min


class Rows:
    """The elements of an iteration, each a row of `width` codes, or one code where that is 1.

    Read in order it goes through the iteration once, in pieces.

    >>> from shardctl.core.iteration.nodes.batch import Batch
    >>> from shardctl.core.iteration.nodes.source import Source
    >>> iteration = Batch(Source(range(5)), 2).iterate()
    >>> _ = iteration.pull(9)
    >>> Rows(iteration, 2).codes(1, 3).tolist() == [[2, 3], [4, FILLER]]
    True
    """

    def __init__(self, iteration: Iteration, width: int) -> None:
        self._iteration, self._width = iteration, width
        self.num_examples = iteration.pulled
        self._next = 0
        self._chunks: Iterator[Int64s] = iter(())
        self._rest = np.empty(0, np.int64)

    def codes(self, start: int, stop: int) -> Int64s:
        """Return the rows of the elements [start, stop)."""
        if start != self._next:
            self._chunks = iter(())
        if start != self._next or not start:
            self._chunks = self._iteration.chunks(start, self.num_examples)
            self._rest = self._rest[:0]
        self._next = stop
        counts = self._counts(np.arange(start, stop))
        missing = (stop - start) * self._width if counts is None else int(counts.sum())
        parts = [self._rest]
        missing -= len(self._rest)
        while missing > 0:
            parts.append(next(self._chunks))
            missing -= len(parts[-1])
        codes = np.concatenate(parts)
        end = len(codes) + missing
        self._rest = codes[end:]
        return self._as_rows(codes[:end], counts)

    def codes_at(self, positions: Int64s) -> Int64s:
        """Return the rows of any elements."""
        return self._as_rows(self._iteration.examples(positions), self._counts(positions))

    def _counts(self, elements: Int64s) -> Int64s | None:
        """Return how many examples each element has, None where all have `width`."""
        return None if self._iteration.width is not None else self._iteration.widths(elements)

    def _as_rows(self, codes: Int64s, counts: Int64s | None) -> Int64s:
        if counts is None:
            return codes if self._width == 1 else codes.reshape(-1, self._width)
        rows = np.full((len(counts), self._width), FILLER)
        rows[np.arange(self._width) < counts[:, None]] = codes
        return rows
