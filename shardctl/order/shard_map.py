"""What pictures of an order show: where in storage its examples lie, and which slot reads what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.order.order import Order
from shardctl.order.sample import epoch_length

NUM_ROWS = 96
NUM_COLUMNS = 192


def looked_up(order: Order, count: int) -> Int64s:
    """Return the codes at single positions of the first epoch, one at random in each equal part."""
    positions = one_in_each_part(0, epoch_length(order), count, np.random.default_rng(0))
    return order._codes_of_stretches(0, positions, 1, exact=False).ravel()


def one_in_each_part(start: int, stop: int, count: int, generator: np.random.Generator) -> Int64s:
    """Return a position at random in each of `count` equal parts of [start, stop), ascending."""
    size, rest = divmod(stop - start, count)
    number = np.arange(count + 1)
    edges = start + number * size + number * rest // count  # no product is beyond an int64
    return generator.integers(edges[:-1], edges[1:])


# Which shard each slot reads when: the visits of a stretch of an order.

Bools = NDArray[np.bool_]

_MOST = 512
_FIRST_READ = 1 << 14  # positions looked at first
_MOST_READ = 1 << 20  # positions looked at in all


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """What a slot reads of a shard before the next slot's turn; without slots, a run of one shard.

    position: of its first example in the order. slot: None where the order has no blocks.
    split, shard: where it is read, the shard numbered as the files of the split are.
    first_id, last_id: ids in the split, of the first and last example that come.
    is_run: whether the ids between them are all that come, in their order.
    """

    position: int
    epoch: int
    slot: int | None
    split: str
    shard: int
    first_id: int
    last_id: int
    count: int
    is_run: bool


@dataclass(frozen=True, kw_only=True)
class Strips:
    """The visits of the positions [start, stop), in the order of positions.

    `is_cut`: `stop` is before what was asked for, as there are more visits, or positions, than are
    looked at. The first visit may have begun before `start`, the last one may end after `stop`.
    """

    visits: tuple[Visit, ...]
    start: int
    stop: int
    is_cut: bool
    several_splits: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Positions in a row: their splits, shards and slots, int64[n], and where a visit ends.

    A slot is -1 where the order has no blocks. `breaks` (bool[n - 1]) is whether the next position
    is of another visit.
    """

    splits: Int64s
    shards: Int64s
    slots: Int64s
    breaks: Bools


def blocks_of(order: Order, codes: Int64s, positions: Int64s) -> Blocks:
    """Return where the visits of positions that follow each other end, from the codes there."""
    splits, shards, indices = order.codes.places(codes)
    found = order.blocks_at(positions)
    if found is None:
        breaks = (np.diff(splits) != 0) | (np.diff(shards) != 0)
        return Blocks(splits=splits, shards=shards, slots=np.full(len(codes), -1), breaks=breaks)
    slots, offsets = found
    # Within a visit the index in the file increases; also by more than 1, with `ds.shard`.
    breaks = np.diff(indices) <= 0  # a file that is read twice begins anew
    # A new visit also where the same shard follows itself: its block number changes.
    for numbers in (splits, shards, slots, offsets // order.settings.block):
        breaks |= np.diff(numbers) != 0
    return Blocks(splits=splits, shards=shards, slots=slots, breaks=breaks)


def strips(order: Order, start: int, stop: int, *, most: int = _MOST) -> Strips:
    """Return the first visits of the positions [start, stop), `most` of them at most.

    Of more than a million positions the first are looked at. An epoch ends a visit. With
    `ds.shard` a visit has the examples of this host.

    >>> from shardctl.order.plan_order import plan_order
    >>> order = plan_order("imagenet2012", "train", {"cycle": 2, "block": 16}).order
    >>> for visit in strips(order, 0, 40).visits:
    ...     print(visit.position, visit.slot, visit.shard, visit.first_id, visit.last_id)
    0 0 0 0 15
    16 1 1 1251 1266
    32 0 0 16 23
    """
    size = _FIRST_READ
    # Grows by 4 until there are enough visits: most answers need only the first piece.
    while True:
        end = min(start + size, stop)
        # One more than is wanted shows whether there are more, and where the last one ends.
        found = _visits(order, start, end, most + 1)
        if end == stop or len(found) > most or size >= _MOST_READ:
            break
        size *= 4
    is_cut = len(found) > most or end < stop
    end = found[most].position if len(found) > most else end
    return Strips(
        visits=tuple(found[:most]),
        start=start,
        stop=end,
        is_cut=is_cut,
        several_splits=order.codes.several_splits,
    )


def _visits(order: Order, start: int, stop: int, most: int) -> list[Visit]:
    if start == stop:
        return []
    codes = order.read(start, stop)
    positions = np.arange(start, stop)
    blocks, epochs = blocks_of(order, codes, positions), order.epoch_of(positions)
    # Where a visit ends is where the next begins: int64[visits - 1], counted from `start`.
    ends = np.flatnonzero(blocks.breaks | (np.diff(epochs) != 0)) + 1
    firsts = np.concatenate([[0], ends])[:most]
    stops = np.append(ends, len(codes))[: len(firsts)]
    ids = order.codes.split_ids(codes)
    # The ids that do not follow the one before them, counted up to each position.
    jumps = np.concatenate([[0], np.cumsum(np.diff(ids) != 1)])
    names = [split.name for split in order.codes.dataset.splits]
    columns = {
        "position": positions[firsts].tolist(),
        "epoch": epochs[firsts].tolist(),
        "slot": [None if slot < 0 else slot for slot in blocks.slots[firsts].tolist()],
        "split": [names[split] for split in blocks.splits[firsts].tolist()],
        "shard": blocks.shards[firsts].tolist(),
        "first_id": ids[firsts].tolist(),
        "last_id": ids[stops - 1].tolist(),
        "count": (stops - firsts).tolist(),
        # No jump between the first and the last id means that all ids between them come, in order.
        "is_run": (jumps[stops - 1] == jumps[firsts]).tolist(),
    }
    rows = zip(*columns.values(), strict=True)
    return [Visit(**dict(zip(columns, row, strict=True))) for row in rows]


# Hosts or shards in so few groups that each can be seen.


class Bucket(NamedTuple):
    """Values first..last, both included: the least of them and the largest."""

    first: int
    last: int
    min: float
    max: float


def buckets(
    values: Sequence[float] | NDArray[np.integer] | NDArray[np.floating], most: int
) -> tuple[Bucket, ...]:
    """Return values in order in `most` groups, whose sizes differ by one at most.

    Where there are no more than `most`, each is its own; of none there is no group.

    >>> [(b.first, b.last, b.min, b.max) for b in buckets([3, 1, 4, 1, 5], 2)]
    [(0, 1, 1, 3), (2, 4, 1, 5)]
    """
    every = values.tolist() if isinstance(values, np.ndarray) else list(values)
    count = min(most, len(every))
    # Edges from products and not from a step, so that sizes differ by one at most.
    edges = pairwise(len(every) * number // count for number in range(count + 1))
    groups = ((first, stop, every[first:stop]) for first, stop in (edges if count else ()))
    return tuple(Bucket(first, stop - 1, min(part), max(part)) for first, stop, part in groups)
