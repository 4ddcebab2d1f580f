"""One reading of the files: the interleave over file instructions in the order they are opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.interleave import Interleave
from shardctl.core.interleave.runs import Runs, runs_in
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

# Each file that is opened takes about a microsecond and 200 bytes.
MAX_OPENED = 1 << 24
_PIECE = 1 << 18  # examples that are read at once, and then made into runs


@dataclass(frozen=True, kw_only=True)
class EpochReading:
    """The examples in the order the reader yields them, before any shuffle buffer.

    `rows` (int64[k]) is the row of the order's reads that each opened file stands for, None where
    they are opened as they are listed; with repeated files a row comes several times. `row_codes`
    (int64[n]) is the code of the first example that each row yields. `stride` and
    `phase` are the count and index of `ds.shard`; `limit` is where the reading is cut, in examples
    of this host.
    """

    rows: Int64s | None = None
    interleave: Interleave
    row_codes: Int64s
    stride: int = 1
    phase: int = 0
    limit: int | None = None

    @property
    def opened(self) -> Int64s:
        """The row that each opened file stands for, int64[k]."""
        return np.arange(self.interleave.num_shards) if self.rows is None else self.rows

    @cached_property
    def first_codes(self) -> Int64s:
        """The code of the first example that each opened file yields, int64[k]."""
        return self.row_codes if self.rows is None else self.row_codes[self.rows]

    def rows_of(self, shards: Int64s) -> Int64s:
        """Return the rows that opened files stand for, int64[q]."""
        return shards if self.rows is None else self.rows[shards]

    @cached_property
    def num_examples(self) -> int:
        """Number of examples this host gets."""
        kept = max(0, -(-(self.interleave.num_examples - self.phase) // self.stride))
        return kept if self.limit is None else min(self.limit, kept)

    def codes(self, start: int, stop: int) -> Int64s:
        """Return the codes at positions [start, stop), int64[stop - start]."""
        if start >= stop:
            return np.empty(0, np.int64)
        if self.stride == 1:
            return self.interleave.read(start, stop, self.first_codes)
        first, last = start * self.stride + self.phase, (stop - 1) * self.stride + self.phase
        return self.interleave.read_every(self.stride, first, last + 1, self.first_codes)

    def runs(self, start: int, stop: int) -> Iterator[Runs]:
        """Yield the runs of consecutive codes at positions [start, stop), in pieces; see `Runs`.

        They are those of visits, which may count on from one to the next.
        """
        if self.stride == 1:
            yield from self.interleave.visits(start, stop, self.first_codes)
            return
        for begin in range(start, stop, _PIECE):
            # Of a host that skips most, most runs are of one.
            yield runs_in(self.codes(begin, min(begin + _PIECE, stop)))

    def locate(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (row of the order's reads, offset in what the row reads), int64[q] each."""
        shard, offset = self.interleave.locate(positions * self.stride + self.phase)
        return self.rows_of(shard), offset

    def codes_at(self, positions: Int64s) -> Int64s:
        """Return the codes at any positions, int64[q] each."""
        rows, offset = self.locate(positions)
        return self.row_codes[rows] + offset

    def blocks(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (slot, offset in the file instruction), int64[q] each, at any positions."""
        shard, offset = self.interleave.locate(positions * self.stride + self.phase)
        return self.interleave.slots_of(shard), offset

    def positions(self, rows: Int64s, offsets: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, position), int64[r] each, for every time an example is read.

        An example that another host of `ds.shard` keeps, or that lies beyond the cut, has none.
        """
        times = self._times(rows)
        query = np.repeat(np.arange(len(rows)), times.shape[1])
        shard = times.ravel()
        position = self.interleave.position(shard, np.repeat(offsets, times.shape[1]))
        # `ds.shard` keeps every n-th example; the rest of the answer counts in those of this host.
        own = position % self.stride == self.phase
        position = position // self.stride
        own &= position < self.num_examples
        return query[own], position[own]

    def _times(self, rows: Int64s) -> Int64s:
        """Return where rows (int64[q]) are opened: int64[q, repetitions]."""
        return rows[:, None] if self.rows is None else self._openings[rows].astype(np.int64)

    @cached_property
    def _openings(self) -> NDArray[np.signedinteger]:
        """Where each row is opened: integers[rows, repetitions]."""
        opened = self.opened
        num_rows = int(opened.max(initial=-1)) + 1
        if len(opened) == num_rows:
            places = np.empty(num_rows, np.int32)  # a list of 2**31 files is never made
            places[opened] = np.arange(num_rows, dtype=np.int32)
            return places[:, None]
        # Each repetition opens every row once, so a stable sort by row has as many openings of
        # each, in order: a table.
        repetitions = len(opened) // num_rows if num_rows else 0
        return np.argsort(opened, kind="stable").reshape(num_rows, repetitions)


def repetitions_to_list(take: Int64s, num_examples: int, *, cycle_length: int) -> int:
    """Return how often to list the files so that an endless list of them reads the same so far.

    `take` (int64[n]) is what each file yields. The two differ once a slot finds no file left to
    open; at most one file a slot is open by then, of those that have yielded anything.

    >>> repetitions_to_list(np.array([3, 2]), 10, cycle_length=2)
    4

    Raises:
        UsageError: more than MAX_OPENED files would have to be listed.
    """
    a_list = int(take.sum())
    if not a_list:
        return 1
    open_files = min(cycle_length, num_examples) * int(take.max())
    repetitions = -(-(num_examples + open_files) // a_list)
    if repetitions * len(take) > MAX_OPENED:
        raise UsageError(
            phrase(
                "{repeat_files=True}: {} examples take {} times {} files, more than {}; "
                "ask for fewer {epochs}",
                num_examples,
                repetitions,
                len(take),
                MAX_OPENED,
            )
        )
    return repetitions
