"""Codes of a reading at any positions, quickly where many of them are near one another."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.epoch_reading import Reading

_BITS = 16
_SIZE = 1 << _BITS  # codes of a page
_MAX_PAGES = 512  # a quarter of a gigabyte
# A page is read at once in the time in which about so many of its codes are looked up one by one.
_WORTH_READING = 1500


class CodePages:
    """The codes of a reading, kept in pages once enough of a page was asked for.

    What shuffles behind a reader asks for positions in a window that moves on, and a few far away.

    >>> from shardctl.core.interleave.interleave import Interleave
    >>> interleave = Interleave([3, 3], cycle_length=2, block_length=1)
    >>> from shardctl.core.order.epoch_reading import EpochReading
    >>> reading = EpochReading(interleave=interleave, row_codes=np.array([0, 10]))
    >>> CodePages(reading).codes_at(np.array([5, 0, 2])).tolist()
    [12, 0, 1]
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        num_pages = -(-reading.num_examples // _SIZE)
        self._place = np.full(num_pages, -1, np.int64)
        self._asked = np.zeros(num_pages, np.int32)
        self._table = np.empty((0, _SIZE), np.int64)
        self._held: list[int] = []  # the page at each place of the table
        self._next = 0

    def codes_at(self, positions: Int64s) -> Int64s:
        """Return the codes at any positions, int64[q]."""
        pages = positions >> _BITS
        places = self._place[pages]
        absent = np.flatnonzero(places < 0)
        if len(absent):
            self._read_often_asked(pages[absent])
            places = self._place[pages]
            absent = np.flatnonzero(places < 0)
            if len(absent) == len(positions):
                return self.reading.codes_at(positions)
        places <<= _BITS
        places += positions & (_SIZE - 1)
        codes: Int64s = self._table.ravel()[places]  # some are wrong, and replaced
        if len(absent):
            codes[absent] = self.reading.codes_at(positions[absent])
        return codes

    def _read_often_asked(self, pages: Int64s) -> None:
        distinct, counts = np.unique(pages, return_counts=True)
        self._asked[distinct] += counts.astype(np.int32)
        often = distinct[self._asked[distinct] >= min(_WORTH_READING, self._least)]
        for page in often[-_MAX_PAGES:].tolist():
            self._read(page)

    @property
    def _least(self) -> int:
        """A reading of less than a page is worth it sooner."""
        return max(1, self.reading.num_examples // 8)

    def _read(self, page: int) -> None:
        if self._next == len(self._held) < _MAX_PAGES:
            if self._next == len(self._table):
                room = min(_MAX_PAGES, len(self._place), max(2, 2 * self._next))
                table = np.empty((room, _SIZE), np.int64)
                table[: self._next] = self._table
                self._table = table
            self._held.append(page)
        else:
            self._next %= len(self._held)
            self._place[self._held[self._next]] = -1  # the one that was read first
            self._held[self._next] = page
        start = page << _BITS
        codes = self.reading.codes(start, min(start + _SIZE, self.reading.num_examples))
        self._table[self._next, : len(codes)] = codes
        self._place[page], self._asked[page] = self._next, 0
        self._next += 1
