"""The places in storage of the examples that an order reads: ranks from 0, and the shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, last_not_above
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.spec.reads import Reads

_TIMES_LONGER = 4  # than the codes asked for a table of all codes may be
_LATEST: deque[StorageOrder] = deque(maxlen=4)


def storage_order(order: Order) -> StorageOrder:
    """Return the places in storage of what an order reads in an epoch.

    Of orders that read the same, however they read it, one of the latest is found again.
    """
    reads, codes = order.reads_of_epoch, order.codes
    made = next((one for one in tuple(_LATEST) if one.is_of(reads, codes)), None)
    if made is None:
        made = StorageOrder([reads], codes)
        _LATEST.append(made)
    return made


class StorageOrder:
    """Ranks of example codes in the order of storage, among all that is read.

    `codes` are those of every one of `several`. An example that is
    read twice has one rank. A shard's number counts the shards that are read, from 0.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.spec.subsplit import SplitRange
    >>> from shardctl.spec.reads import reads_of
    >>> split = Split.even(name="train", num_examples=12, num_shards=3)
    >>> data = Dataset(name="d", splits=(split,))
    >>> reads = reads_of(data, [SplitRange(split=split, start=6, stop=10),
    ...                           SplitRange(split=split, start=2, stop=8)])
    >>> ranks = StorageOrder([reads], ExampleCodes(data, ["train"]))
    >>> ranks.num_ranks, ranks.shard_sizes.tolist()
    (8, [2, 4, 2])
    >>> [array.tolist() for array in ranks.of(np.array([2, 6, 9]))]
    [[0, 4, 7], [0, 1, 2]]
    """

    def __init__(self, several: Sequence[Reads], codes: ExampleCodes) -> None:
        self._given = several, codes
        starts, takes, splits, shards = _columns(several, codes)
        stops = starts + takes
        # Mostly the rows lie in the order of storage, each with examples of its own.
        if not len(takes) or takes.min() < 1 or (starts[1:] < stops[:-1]).any():
            rows, starts, stops = _parted(starts, stops)
            splits, shards = splits[rows], shards[rows]
        sizes = stops - starts
        changes = (splits[1:] != splits[:-1]) | (shards[1:] != shards[:-1])
        self._starts, self._stop = starts, int(stops[-1]) if len(stops) else 0
        if changes.all():  # each row is a shard
            self._shards, self.shard_sizes = np.arange(len(starts)), sizes
        else:
            self._shards = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
            # bincount's weights are floats, exact up to 2**53 examples in a shard.
            self.shard_sizes = np.bincount(self._shards, sizes).astype(np.int64)
        # What is added to a code to get its rank: the examples before its row less the row's start.
        self._offsets: Int64s = np.cumsum(sizes) - stops
        self.num_ranks = int(sizes.sum())
        self.num_read = int(takes.sum())

    def is_of(self, reads: Reads, codes: ExampleCodes) -> bool:
        """Whether these places are of just one `reads`, or of others that read the same."""
        (own, *others), own_codes = self._given
        return not others and own_codes.names_alike(codes) and own.reads_alike(reads)

    @property
    def first_codes(self) -> Int64s:
        """The code of the first example that is read of each shard, int64[shards]."""
        codes: Int64s = self._starts[np.flatnonzero(np.diff(self._shards, prepend=-1))]
        return codes

    @property
    def read_sizes(self) -> Int64s:
        """How many examples are read of each shard, int64[shards]; what is read twice is two."""
        if self.num_read == self.num_ranks:
            return self.shard_sizes
        starts, takes, _, _ = _columns(*self._given)
        rows = np.flatnonzero(takes)
        shards = self.of(starts[rows])[1]
        return np.bincount(shards, takes[rows], len(self.shard_sizes)).astype(np.int64)

    def of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (rank, number of the shard), int64 of the shape of `codes`."""
        if len(self._starts) == 1:
            return codes + self._offsets[0], np.zeros_like(codes)
        rows = self._rows(codes)
        return codes + self._offsets[rows], self._shards[rows]

    def _rows(self, codes: Int64s) -> NDArray[np.signedinteger]:
        span = int(self._stop - self._starts[0]) if len(self._starts) else 0
        if not 0 < span <= _TIMES_LONGER * codes.size:
            return last_not_above(self._starts, codes)
        # A table of all codes: millions in no order, each found by halving, miss the cache again
        # and again.
        every = np.arange(len(self._starts), dtype=np.int32)
        table = np.repeat(every, np.diff(self._starts, append=self._stop))
        return np.asarray(table[codes - self._starts[0]])


def _columns(several: Sequence[Reads], codes: ExampleCodes) -> tuple[Int64s, ...]:
    """Return (first code, number of examples, split, shard) of each row, int64[n] each."""
    columns = [
        (codes.first_codes(reads), reads.take[:], reads.split[:], reads.shard[:])
        for reads in several
    ]
    if len(columns) == 1:
        return columns[0]
    return tuple(np.concatenate(column) for column in zip(*columns, strict=True))


def _parted(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return (row, start, stop) in the order of storage, of what no earlier row reads as well."""
    rows = np.argsort(starts, kind="stable")
    starts, stops = starts[rows], stops[rows]
    # What an earlier row reads as well is cut from a later one.
    reached = np.maximum.accumulate(np.concatenate([[0], stops]))[:-1]
    starts = np.maximum(starts, reached)
    kept = np.flatnonzero(stops > starts)
    return rows[kept], starts[kept], stops[kept]
