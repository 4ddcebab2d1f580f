"""One epoch as TFDS's reader reads it, before any shuffle buffer.

It holds the files of a host, the seeds of the file shuffle and of the buffer, and the interleave.
From these any position of the epoch follows without reading a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, ranges
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order.order import CHUNK_SIZE
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.reads import Reads, reads_of, sorted_rows
from shardctl.spec.subsplit import SplitRange
from shardctl.tfdata.interleave import Interleave, InterleaveState
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    ScriptSeeds,
    SeedGenerator,
    iterators_per_pass,
)


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
        if self.rows is None:
            return self.row_codes
        codes: Int64s = self.row_codes[self.rows]
        return codes

    def rows_of(self, shards: Int64s) -> Int64s:
        """Return the rows that opened files stand for, int64[q]."""
        return shards if self.rows is None else self.rows[shards]

    @cached_property
    def num_examples(self) -> int:
        """Number of examples this host gets."""
        # The cut counts examples of this host, so it applies after the share of `ds.shard`.
        kept = len(range(self.phase, self.interleave.num_examples, self.stride))
        return kept if self.limit is None else min(self.limit, kept)

    def codes(self, start: int, stop: int) -> Int64s:
        """Return the codes at positions [start, stop), int64[stop - start]."""
        if start >= stop:
            return np.empty(0, np.int64)
        if self.stride == 1:
            return self.interleave.read(start, stop, self.first_codes)
        # This host's position p is position p * stride + phase of the reading that all hosts share.
        first, last = start * self.stride + self.phase, (stop - 1) * self.stride + self.phase
        return self.interleave.read_every(self.stride, first, last + 1, self.first_codes)

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes at positions [start, stop), in pieces that stay in the cache."""
        for begin in range(start, stop, CHUNK_SIZE):
            yield self.codes(begin, min(begin + CHUNK_SIZE, stop))

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
        # int64[r]: `query` says which of the rows asked for, `shard` which opened file it comes
        # from.
        query, shard = self._times(rows)
        position = self.interleave.position(shard, offsets[query])
        # `ds.shard` keeps every n-th example; the rest of the answer counts in those of this host.
        own = position % self.stride == self.phase
        position = position // self.stride
        own &= position < self.num_examples
        return query[own], position[own]

    def _times(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, opened file) for each time that one of the rows is opened."""
        query = np.arange(len(rows))
        if self.rows is None:
            return query, rows
        opened, by_row = self._openings
        if opened is None:
            return query, by_row[rows].astype(np.int64)
        first, stop = opened.searchsorted(rows), opened.searchsorted(rows, side="right")
        # The openings of one row lie side by side in `opened`: int64[q] openings for each query.
        counts = stop - first
        return np.repeat(query, counts), by_row[ranges(first, counts)].astype(np.int64)

    @cached_property
    def _openings(self) -> tuple[Int64s | None, NDArray[np.signedinteger]]:
        """The rows in ascending order, and where each is opened; None where each is once."""
        opened = self.opened
        num_rows = int(opened.max(initial=-1)) + 1
        if len(opened) == num_rows:
            # A permutation: its inverse by one scatter, without a sort.
            places = np.empty(num_rows, np.int32)  # a list of 2**31 files is never made
            places[opened] = np.arange(num_rows, dtype=np.int32)
            return None, places
        # Stable, so that the openings of one row stay in the order in which they are read.
        by_row = np.argsort(opened, kind="stable")
        return opened[by_row], by_row

    def state(self, num_read: int) -> InterleaveState:
        """Return which files are open, and where, once this host has so many examples."""
        # With `ds.shard` the reader also reads what it skips: num_read * stride examples of all
        # hosts.
        return self.interleave.state(min(num_read * self.stride, self.interleave.num_examples))


def repetitions_listed(take: Int64s, num_examples: int, *, cycle_length: int) -> int:
    """Return how often to list the files so that an endless list of them reads the same so far.

    `take` (int64[n]) is what each file yields. The two differ once a slot finds no file left to
    open; at most one file a slot is open by then, of those that have yielded anything.

    >>> repetitions_listed(np.array([3, 2]), 10, cycle_length=2)
    4
    """
    # What one listing of the files yields.
    a_list = int(take.sum())
    if not a_list:
        return 1
    # An upper bound of what the files hold in all that are open by then.
    open_files = min(cycle_length, num_examples) * int(take.max())
    return -(-(num_examples + open_files) // a_list)


# Many interleaves at once, each of the same number of shards: where a few examples are in each.


def opened_together(lengths: Int64s, *, cycle_length: int, block_length: int) -> Int64s:
    """Return round * cycle_length + slot of the first visit to each shard, int64[n, e or 1].

    lengths: int64[n, e], an interleave a column; no more slots than shards.

    >>> lengths = np.array([[3, 1], [0, 3], [2, 3], [1, 0]])
    >>> opened_together(lengths, cycle_length=2, block_length=2).T
    array([[0, 1, 3, 4],
           [0, 1, 2, 5]])
    """
    # A shard of L examples occupies L // block + 1 visits of its slot, the last of which may be
    # empty. A visit is `cycle_length` steps of the key, so `steps` is int64[n, e] in units of the
    # key.
    steps = (lengths // block_length + 1) * cycle_length
    if steps.min() == steps.max():  # the slots come free in turn
        turns, slots = np.divmod(np.arange(len(lengths)), cycle_length)
        keys: Int64s = (turns * steps[0, 0] + slots)[:, None]
        return keys
    # Otherwise one loop over the shards, for all interleaves (columns) together. `free`
    # (int64[cycle, e]) is the key of the next visit at which each slot is free.
    columns = np.arange(lengths.shape[1])
    free = np.repeat(np.arange(cycle_length)[:, None], len(columns), axis=1)
    keys = np.empty_like(lengths)
    for shard, taken in enumerate(steps):
        # The next shard opens in the slot that comes free first; keys order visits by (round,
        # slot).
        first = free.min(axis=0)
        keys[shard] = first
        # The key names the slot, too.
        free[first % cycle_length, columns] = first + taken
    return keys


def positions_together(
    lengths: Int64s,
    keys: Int64s,
    places: Int64s,
    offset: int,
    *,
    cycle_length: int,
    block_length: int,
) -> Int64s:
    """Return the position in each interleave (int64[e]) of an example of a shard.

    places: int64[e], which shard of each it is; the example is at `offset` in what that yields.
    """
    # The example is in visit number `block` of its shard, at `within` in that visit's block.
    block, within = divmod(offset, block_length)
    chosen = keys[places, 0] if keys.shape[1] == 1 else keys[places, np.arange(len(places))]
    visit = chosen + block * cycle_length
    # What each shard yields before: a block a visit, the last of which has the rest.
    # ceil((visit - key) / cycle): how many visits a shard has had before this one. int64[n, e]
    visits = np.maximum((visit - keys + (cycle_length - 1)) // cycle_length, 0)
    visits *= block_length
    positions: Int64s = np.minimum(visits, lengths).sum(axis=0) + within
    return positions


# The seeds from which the two shuffles of a pipeline draw in an epoch.


@dataclass(frozen=True, kw_only=True)
class EpochSeeds:
    """Seeds of the file shuffle and of the shuffle buffer, epoch by epoch of the pass.

    `partial_last_batch` says that the last batch of a pass is smaller than the others and kept;
    what Keras makes of a repeat depends on it.

    >>> seeds = EpochSeeds(settings=ReadSettings(shuffle_seed=7, epochs=2))
    >>> seeds.of_files(0) == seeds.of_files(1)
    False
    """

    settings: ReadSettings
    partial_last_batch: bool = False

    @cached_property
    def _generators(self) -> tuple[SeedGenerator, SeedGenerator]:
        """Those of the files and of the buffer; without seeds of their own, drawn in this order."""
        # The order of these two calls matters: a missing seed takes the next number that
        # `random.Random(global seed)` draws, and TFDS builds the file shuffle before the buffer.
        settings, script = self.settings, ScriptSeeds(self.settings.global_seed)
        of_files = script.kernel(settings.shuffle_seed) if settings.shuffles_files else None
        return (
            SeedGenerator(of_files, settings.reshuffle, stage="the shuffle of the files"),
            SeedGenerator(
                script.kernel(settings.buffer_seed), settings.buffer_reshuffle, stage="the buffer"
            ),
        )

    def of_files(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the files are shuffled in an epoch.

        Raises:
            UnpredictableOrderError: Keras, a later pass and a repeat, where threads race.
        """
        return self._generators[0].seeds_of(epoch + self._files_before)

    def of_files_in(self, epochs: range) -> NDArray[np.uint64]:
        """Return the seeds of the file shuffle in epochs that follow each other, uint64[n, 2].

        Raises:
            UnpredictableOrderError: as for one.
        """
        first = epochs.start + self._files_before
        return self._generators[0].seeds_of_several(range(first, first + len(epochs)))

    def of_buffer(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the shuffle buffer is read in an epoch.

        Raises:
            UnpredictableOrderError: as for the files.
        """
        # The files that repeat are one endless epoch for whatever follows the reader.
        epochs = 1 if self.settings.repeat_files else self.settings.epochs
        before = self._before(self._generators[1], epochs, fused=True)
        return self._generators[1].seeds_of(epoch + before)

    @property
    def _files_before(self) -> int:
        """Iterators of the file shuffle that earlier passes made."""
        # Without a buffer, an unfused repeat makes one more iterator than there are epochs, and
        # that one takes seeds of the file shuffle as well. Below a buffer nothing is made before it
        # is read.
        settings, files = self.settings, self._generators[0]
        if settings.repeat_files and settings.pass_index and not files.is_fixed:
            raise UsageError("a pass that repeats forever has no end, so no pass follows it")
        under = settings.buffer is not None
        return self._before(files, settings.epochs, fused=False, under_shuffle=under)

    def _before(self, generator: SeedGenerator, epochs: int, **how: bool) -> int:
        settings = self.settings
        # Without reshuffling, every iterator uses the same seeds, so that their number does not
        # matter.
        if not settings.pass_index or generator.is_fixed:
            return 0
        # With an InputContext TFDS asserts no cardinality, and Keras makes an iterator an epoch of
        # a dataset whose length it does not know (keras/src/trainers/epoch_iterator.py).
        knows_length = settings.host is None or settings.host_mode.knows_length
        per_pass = iterators_per_pass(
            epochs,
            loop=settings.loop if knows_length else "python",
            partial_last_batch=self.partial_last_batch,
            **how,
        )
        return settings.pass_index * per_pass


# What a host reads in an epoch.


def sorted_reads(dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings) -> Reads:
    """Return what TFDS's reader is given, sorted: the host's part of an even split, else all.

    Hosts of `InputContext` are given the same files, and take theirs in `own_rows`.
    """
    reads = reads_of(dataset, settings.host_mode.ranges(ranges, settings.host))
    # TFDS sorts the instructions (interleave_sort_fn) before it shares them among hosts
    # (core/reader.py, _read_files).
    return sorted_rows(reads, reverse=settings.reverse, file_order=settings.file_order)


def own_rows(reads: Reads, settings: ReadSettings) -> Reads:
    """Return what the host reads of its sorted file instructions: all, or every n-th by files.

    Raises:
        UsageError: fewer file instructions than hosts of `InputContext`, which TFDS refuses.
    """
    host, mode = settings.host, settings.host_mode
    if host is None:
        return reads
    if mode.refuses_files(len(reads), host.count):
        raise UsageError(
            f"--host '{host}' by {mode.word}: {len(reads)} file instructions for {host.count} "
            "hosts, TFDS needs one a host at least; split examples with --host-by even"
        )
    own = mode.own_instructions(len(reads), host)
    if own == slice(None):
        return reads
    # Rows and not a slice, which would keep the rows of all hosts in memory.
    return reads.select(np.arange(*own.indices(len(reads))))
