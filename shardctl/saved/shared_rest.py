"""The rest of an epoch after a run continued with another number of hosts: what each host reads.

The rest is shared out in the order of the files, as runs of examples. A host interleaves the files
of its runs as it does whole files, each opened once, and shuffles what comes of them with the seeds
of the epoch. So the order within a share is as exact as that of an epoch: it can be continued
anywhere in it, and what is left of it shared out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import Reads, joined
from shardctl.tfdata.interleave import Interleave
from shardctl.tfdata.shuffle_buffer import ShuffleReplay, shuffled_codes
from shardctl.tfdata.shuffle_seeds import KernelSeeds


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedRest:
    """One host's share of what was left of an epoch.

    reads: the runs of examples that fall to it; those of one file that follow one another are read
        as one file, and what lies between them is dropped.
    epoch: the epoch with whose seeds they are shuffled; whole epochs follow from the next one on.
    buffer: the size of the shuffle buffer as the settings have it, None without one.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.spec.reads import reads_of
    >>> from shardctl.spec.subsplit import SplitRange
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> whole = reads_of(Dataset(name="d", splits=(train,)),
    ...                  [SplitRange(split=train, start=2, stop=9)])
    >>> rest = SharedRest(epoch=0, reads=whole, cycle=2, block=1, buffer=None, buffer_seeds=None)
    >>> np.concatenate([*rest.chunks(0, 7, ExampleCodes(whole.dataset, ["train"], whole))]).tolist()
    [2, 3, 4, 6, 5, 7, 8]
    >>> left = rest.left(3)
    >>> list(zip(left.shard.tolist(), left.skip.tolist(), left.take.tolist()))
    [(1, 2, 1), (2, 0, 3)]
    """

    epoch: int
    reads: Reads
    cycle: int
    block: int
    buffer: int | None
    buffer_seeds: KernelSeeds | None

    @cached_property
    def size(self) -> int:
        """Number of examples of the share."""
        return self.reads.num_examples

    @cached_property
    def reading(self) -> EpochReading:
        """How the files are read; its codes are places in the share, counted along its runs."""
        # int64[files]: the runs of one file summed up, since the interleave reads them as one file.
        lengths = np.add.reduceat(self.reads.take, self._first_rows) if self.size else _NONE
        return EpochReading(
            interleave=Interleave(lengths, cycle_length=self.cycle, block_length=self.block),
            # Codes are positions along the runs: file k begins where the files before it end.
            row_codes=np.cumsum(lengths) - lengths,
        )

    @property
    def replay(self) -> ShuffleReplay | None:
        """The replay of the shuffle buffer, None without one."""
        if self.buffer is None or self.buffer_seeds is None or not self.size:
            return None
        size = self.size if self.buffer == WHOLE_DATASET else self.buffer
        return ShuffleReplay(num_elements=self.size, buffer_size=size, seeds=self.buffer_seeds)

    def chunks(self, start: int, stop: int, codes: ExampleCodes) -> Iterator[Int64s]:
        """Yield the codes of the examples [start, stop) that are yielded, piece by piece."""
        if self.replay is not None:
            pieces = shuffled_codes(self.reading, self.replay, start, stop)
        else:
            pieces = self.reading.chunks(start, stop)
        # From positions in the share to the codes of examples.
        firsts = codes.first_codes(self.reads)
        for places in pieces:
            rows, offsets = self._rows_at(places)
            yield firsts[rows] + offsets

    def pending(self, emitted: int) -> Reads:
        """Return what the buffer holds, an example a row, in the order in which it was read."""
        replay = self.replay
        # Outputs of the reader that went into the buffer and have not come out.
        places = _NONE if replay is None else self.reading.codes_at(replay.pending(emitted))
        rows, offsets = self._rows_at(places)
        return self.reads.select(rows).trimmed(offsets, np.ones_like(offsets))

    def files_left(self, emitted: int) -> tuple[Reads, Int64s]:
        """Return the rows still to be read, and how many of them each opened file has (int64[m]).

        The interleave of those files, in their order, reads what the interrupted one was to read
        next; what the buffer holds is not among it.
        """
        replay = self.replay
        # A buffer has read further than it has yielded; what it holds is in `pending`.
        num_read = emitted if replay is None else replay.num_read(emitted)
        if num_read >= self.size:
            return self.reads.select(slice(0, 0)), _NONE
        # `head` is (file, skip, take) for each file that is open, int64[k, 3]; `first` is the first
        # file that is not opened yet.
        head, first = self.reading.interleave.open_rest(num_read)
        starts = self.reading.row_codes
        several, num_rows = [], []
        for file, skip, take in head.tolist():
            several.append(self._between(int(starts[file]) + skip, take))
            num_rows.append(len(several[-1]))
        # Unopened files keep their rows: `diff` is how many rows each of them has.
        first_rows = np.append(self._first_rows, len(self.reads))
        several.append(self.reads.select(slice(int(first_rows[first]), None)))
        return joined(several), np.append(_ints(num_rows), np.diff(first_rows[first:]))

    def left(self, emitted: int | None) -> Reads:
        """Return all that is not yielded after so many examples, None for all of them."""
        emitted = self.size if emitted is None else emitted
        return joined([self.files_left(emitted)[0], self.pending(emitted)]).runs()

    def _between(self, start: int, take: int) -> Reads:
        if take:
            return self.reads.between(start, start + take)
        # A file with nothing left still takes its turn.
        row, skip = self._rows_at(_ints([start - 1]))
        return self.reads.select(row).trimmed(skip + 1, _ints([0]))

    def _rows_at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return (row, offset in what it reads), int64[q] each, at places in the share."""
        # "right": a row ends where the next begins, so a position at an end is of the next row.
        rows = np.searchsorted(self._ends, places, side="right")
        return rows, places - (self._ends - self.reads.take)[rows]

    @cached_property
    def _ends(self) -> Int64s:
        return np.cumsum(self.reads.take)

    @cached_property
    def _first_rows(self) -> Int64s:
        """The row with which each opened file begins, int64[k]."""
        reads = self.reads
        continued = (
            (reads.split[1:] == reads.split[:-1])
            & (reads.shard[1:] == reads.shard[:-1])
            # Further on in the same file; a run that goes back opens the file a second time.
            & (reads.skip[1:] >= reads.skip[:-1] + reads.take[:-1])
        )
        return np.flatnonzero(np.append(True, ~continued)) if len(reads) else _NONE


_NONE = np.empty(0, np.int64)


def _ints(values: list[int]) -> Int64s:
    return np.array(values, np.int64)
