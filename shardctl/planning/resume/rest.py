"""What is left of one epoch of an order: the rest of the reading, and what a buffer holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.instructions.reads import ReadTable
from shardctl.core.order.epoch_reading import FileReads
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ShuffleState, Standing


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in an order: `emitted` examples into a stream, which is an epoch.

    With repeated files all epochs are one stream, and `epoch` is the one the place falls in.
    `remaining` is what is left of the stream, 0 at the end of the whole order.
    """

    epoch: int
    stream: int
    emitted: int
    remaining: int


def place_of(order: Order, consumed: int) -> Place:
    """Return the place after `consumed` examples; the end of an epoch is the start of the next."""
    size, epochs = order.epoch_size, order.settings.epochs
    if consumed == order.num_examples:
        # Also where a last batch is dropped: the order ends here.
        epoch = min(consumed // size, epochs - 1) if size else epochs - 1
        stream = 0 if order.settings.repeat_files else epoch
        return Place(epoch=epoch, stream=stream, emitted=consumed - stream * size, remaining=0)
    epoch, emitted = divmod(consumed, size)
    if order.settings.repeat_files:
        return Place(epoch=epoch, stream=0, emitted=consumed, remaining=size * epochs - consumed)
    return Place(epoch=epoch, stream=epoch, emitted=emitted, remaining=size - emitted)


def inputs_read(order: Order, place: Place) -> int:
    """Return how many examples this host has got from the reader, those in a buffer among them."""
    if order.num_buffered is None:
        return place.emitted
    return order.replay(place.stream).consumed(place.emitted)


def rest_of_reading(table: ReadTable, reads: FileReads, num_read: int) -> ReadTable:
    """Return the rows whose fresh interleave goes on after `num_read` examples of this reading.

    A host of `ds.shard(n, i)` has read i examples beyond its last whole turn of n; the list begins
    at the turn, so that the same `shard(n, i)` goes on. Where the files repeat, the list ends with
    the stream, and with what a buffer reads ahead of its end.
    """
    if num_read >= reads.num_examples:
        return table.select(slice(0, 0))
    shard, skip, take = reads.interleave.continuation(num_read * reads.stride)
    if reads.limit is not None:
        take = np.clip(_read_at_end(reads, table.take)[shard] - skip, 0, take)
        kept = np.flatnonzero((take > 0) | (skip > 0))
        shard, skip, take = shard[kept], skip[kept], take[kept]
    return table.select(reads.opened[shard]).trimmed(skip, take)


def _read_at_end(reads: FileReads, lengths: Int64s) -> Int64s:
    """Return how much of each opened file (int64[k]) is read at the cut of an endless reading.

    A file that is cut there ends a block or is the last one read, so its slot is asked for more
    only after the cut: the shorter file gives the same order.
    """
    state = reads.interleave.state((reads.num_examples - 1) * reads.stride + reads.phase + 1)
    num_read = lengths[reads.opened]
    num_read[state.next_shard :] = 0
    for shard, count in state.slots:
        if shard is not None:
            num_read[shard] = count
    return num_read


def standing(order: Order, stream: int, num_read: int) -> Standing:
    """Return what stands open after `num_read` examples of this host."""
    reads = order.reads(stream)
    position = min(num_read * reads.stride, reads.interleave.num_examples)
    state = reads.interleave.state(position)
    return Standing(
        open_files=sum(shard is not None for shard, _ in state.slots),
        block_offset=state.block_offset,
        next_file=state.next_shard,
        num_files=len(reads.opened),
    )


def pending_inputs(order: Order, place: Place) -> Int64s:
    """Return the inputs of the buffer (int64[p], ascending) that are read but not handed out."""
    if order.num_buffered is None:
        return np.empty(0, np.int64)
    return order.replay(place.stream).pending(place.emitted)


def shuffle_state(order: Order, place: Place) -> ShuffleState:
    """Return where the buffer stands."""
    replay = order.replay(place.stream)
    return ShuffleState(
        buffer_size=replay.buffer_size,
        seeds=replay.seeds,
        num_elements=replay.num_elements,
        num_read=replay.consumed(place.emitted),
        emitted=place.emitted,
    )


def rows_at(table: ReadTable, reads: FileReads, positions: Int64s) -> ReadTable:
    """Return the examples at positions (int64[q]) of a reading as runs in the order of the files.

    >>> import numpy as np
    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.core.instructions.file_instruction import SplitRange
    >>> from shardctl.core.settings.read_settings import ReadSettings
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> order = Order(Dataset(name="d", splits=(train,)),
    ...               [SplitRange(split=train, start=0, stop=12)], ReadSettings())
    >>> runs = rows_at(order.table, order.reads(0), np.array([0, 1, 3, 4]))
    >>> list(zip(runs.shard.tolist(), runs.skip.tolist(), runs.take.tolist()))
    [(0, 0, 2), (0, 3, 1), (1, 0, 1)]
    """
    shard, offset = reads.interleave.locate(positions * reads.stride + reads.phase)
    singles = table.select(reads.opened[shard])
    return runs_of(singles.trimmed(offset, np.ones_like(offset)))


def runs_of(table: ReadTable) -> ReadTable:
    """Return rows in the order of the files, those that follow on one another made one.

    Rows that read no example are left out; rows that read the same example stay apart.
    """
    table = table.select(np.flatnonzero(table.take))
    table = table.select(np.lexsort((table.skip, table.shard, table.split)))
    if not len(table):
        return table
    follows = (
        (table.split[1:] == table.split[:-1])
        & (table.shard[1:] == table.shard[:-1])
        & (table.skip[1:] == table.skip[:-1] + table.take[:-1])
    )
    starts = np.flatnonzero(np.concatenate([[True], ~follows]))
    takes = np.add.reduceat(table.take, starts)
    firsts = table.select(starts)
    return firsts.trimmed(np.zeros_like(takes), takes)


def joined(tables: list[ReadTable]) -> ReadTable:
    """Return the rows of several tables of one dataset, one after the other."""
    return ReadTable(
        dataset=tables[0].dataset,
        part=np.concatenate([table.part for table in tables]),
        split=np.concatenate([table.split for table in tables]),
        shard=np.concatenate([table.shard for table in tables]),
        skip=np.concatenate([table.skip for table in tables]),
        take=np.concatenate([table.take for table in tables]),
        first=np.concatenate([table.first for table in tables]),
    )
