"""The interleave of tf.data as a value: any position answered, any stretch read, no file opened."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import ref

import numpy as np
import numpy.typing as npt

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.continuation import (
    InterleaveState,
    continuation_at,
    open_rest_at,
    state_at,
)
from shardctl.core.interleave.read import read, visits
from shardctl.core.interleave.runs import Runs
from shardctl.core.interleave.schedule import Schedule, build_schedule
from shardctl.errors import UsageError

__all__ = ["Interleave", "InterleaveState"]


# A position costs 1 ns to read in sequence and 1.5 to 5 in turns, and 50 to 110 to look up.
_SPARSE_IN_SEQUENCE = 100
_SPARSE = 32
_LOOKED_UP = 1 << 16  # positions looked up at a time, and read at a time: what fits in the cache
_READ = 1 << 18


class Interleave:
    """The order in which `interleave` reads shards, from the examples that each yields.

    `lengths` is int64[n], in the order of opening; a length may be 0, as may n. The order is that
    of `tf.data.Dataset.interleave` with these `cycle_length` and `block_length`, sequential or
    deterministic in parallel (tensorflow/core/kernels/data/interleave_dataset_op.cc). Shards are
    numbered in the order of opening. Immutable; building costs a heap step and two sorts a shard,
    nothing an example. UsageError for a cycle or block length below 1, for a negative shard length
    and for positions that do not exist.

    >>> order = Interleave([3, 0, 2, 1], cycle_length=2, block_length=2)
    >>> shard, offset = order.locate(np.arange(order.num_examples))
    >>> list(zip(shard.tolist(), offset.tolist()))
    [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (3, 0)]
    >>> order.read(1, 4, first_ids=[0, 10, 20, 30]).tolist()
    [1, 2, 20]
    """

    __slots__ = ("_schedule",)

    def __init__(self, lengths: npt.ArrayLike, *, cycle_length: int, block_length: int) -> None:
        kept = _int64s("lengths", lengths)
        if kept.flags.writeable:  # whoever holds it could change what the schedule keeps
            kept = kept.copy()
        self._schedule = _schedule(kept, cycle_length, block_length)

    def __repr__(self) -> str:
        return f"<Interleave of {self.num_examples} examples in {self.num_shards} shards>"

    @property
    def num_examples(self) -> int:
        """Number of positions."""
        return self._schedule.num_examples

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return len(self._schedule.lengths)

    @property
    def first_round(self) -> Int64s:
        """The round in which each shard is opened; int64[n], read-only, made at each call."""
        return self._schedule.first_round

    @property
    def slot(self) -> Int64s:
        """The slot in which each shard is opened; int64[n], read-only, made at each call."""
        return self._schedule.slot

    def slots_of(self, shards: Int64s) -> Int64s:
        """Return the slot in which each of these shards is opened, int64[q]."""
        return self._schedule.opening[shards] % self._schedule.cycle_length

    def locate(self, positions: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return (shard, offset in what the shard yields), each int64[q], of positions int64[q]."""
        positions = _int64s("positions", positions)
        self._check("position", positions, self.num_examples)
        schedule = self._schedule
        visits, offsets = schedule.visits_at(positions)
        rounds, slots = schedule.rounds.places(visits)
        # Without shards there are no occupants to look among; nor are there positions then.
        if not len(positions):
            return positions, offsets
        shards, first_rounds = schedule.occupants(rounds, slots)
        return (
            shards.astype(np.int64),
            (rounds - first_rounds) * schedule.block_length + offsets,
        )

    def position(self, shard: npt.ArrayLike, offset: npt.ArrayLike) -> Int64s:
        """Return the position (int64[q]) of each (shard, offset): the inverse of `locate`."""
        shards, offsets = _int64s("shard", shard), _int64s("offset", offset)
        schedule = self._schedule
        if len(shards) != len(offsets):
            raise UsageError(f"{len(shards)} shards, {len(offsets)} offsets: they come in pairs")
        self._check("shard", shards, self.num_shards)
        if (wrong := np.flatnonzero((offsets < 0) | (offsets >= schedule.lengths[shards]))).size:
            index, length = offsets[wrong[0]], schedule.lengths[shards[wrong[0]]]
            raise UsageError(f"offset {index}: shard {shards[wrong[0]]} yields {length} examples")
        blocks, in_block = np.divmod(offsets, schedule.block_length)
        first_rounds, slots = np.divmod(schedule.opening[shards], schedule.cycle_length)
        visits = schedule.rounds.ordinals(first_rounds + blocks, slots)
        return schedule.positions_of(visits) + in_block

    def read(self, start: int, stop: int, first_ids: npt.ArrayLike) -> Int64s:
        """Return the ids (int64[stop - start]) at the positions [start, stop), in reading order.

        `first_ids` (int64[n]) is the id of the first example that each shard yields; the others
        count on from it.
        """
        return read(self._schedule, *self._range(start, stop), self._first_ids(first_ids))

    def read_every(self, step: int, start: int, stop: int, first_ids: npt.ArrayLike) -> Int64s:
        """Return `read(start, stop, first_ids)[::step]`, in the memory of the answer.

        Where few ids are wanted of many, each is looked up by itself.
        """
        start, stop = self._range(start, stop)
        ids, wanted = self._first_ids(first_ids), range(start, stop, step)
        in_sequence = self._schedule.cycle_length == 1
        is_sparse = step >= (_SPARSE_IN_SEQUENCE if in_sequence else _SPARSE)
        size = _LOOKED_UP if is_sparse else _READ // step  # in thousands: steps are below 100
        found = np.empty(len(wanted), np.int64)
        for begin in range(0, len(wanted), size):
            piece = wanted[begin : begin + size]
            if is_sparse:
                shards, offsets = self.locate(piece[0] + np.arange(len(piece)) * step)
                np.add(ids[shards], offsets, out=found[begin : begin + size])
            else:
                read_on = read(self._schedule, piece[0], piece[-1] + 1, ids)
                found[begin : begin + size] = read_on[::step]
        return found

    def chunks(
        self, start: int, stop: int, first_ids: npt.ArrayLike, chunk_size: int = 1 << 20
    ) -> Iterator[Int64s]:
        """Return an iterator over `read(start, stop, first_ids)` in pieces of `chunk_size` ids.

        Memory is that of a few pieces. The last piece may be shorter.
        """
        start, stop = self._range(start, stop)
        ids = self._first_ids(first_ids)
        if chunk_size < 1:
            raise UsageError(f"chunk_size {chunk_size}: a chunk has at least 1 id")
        return (
            read(self._schedule, begin, min(begin + chunk_size, stop), ids)
            for begin in range(start, stop, chunk_size)
        )

    def visits(self, start: int, stop: int, first_ids: npt.ArrayLike) -> Iterator[Runs]:
        """Return an iterator over the visits of [start, stop): (first id, how many), int64[v] each.

        What `read` returns, at the cost of visits and not of ids, piece by piece.
        """
        return visits(self._schedule, *self._range(start, stop), self._first_ids(first_ids))

    def state(self, position: int) -> InterleaveState:
        """Return what is in each slot after `position` examples were consumed."""
        return state_at(self._schedule, position)

    def continuation(self, consumed: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (shard, skip, take), each int64[m], whose fresh interleave reads the rest.

        The same cycle and block length are meant; skip counts in what the shard yields.
        """
        return continuation_at(self._schedule, consumed)

    def open_rest(self, consumed: int) -> tuple[Int64s, int]:
        """Return `continuation` in two: (shard, skip, take) of the slots, int64[m, 3]; the rest.

        The rest is all shards from that number on, whole.
        """
        return open_rest_at(self._schedule, consumed)

    def _range(self, start: int, stop: int) -> tuple[int, int]:
        if not 0 <= start <= stop <= self.num_examples:
            raise UsageError(
                f"positions [{start}, {stop}): a range lies in [0, {self.num_examples}]"
            )
        return start, stop

    def _first_ids(self, first_ids: npt.ArrayLike) -> Int64s:
        ids = _int64s("first_ids", first_ids)
        if len(ids) != self.num_shards:
            raise UsageError(f"{len(ids)} first_ids: there are {self.num_shards} shards")
        return ids

    @staticmethod
    def _check(name: str, values: Int64s, stop: int) -> None:
        if (wrong := values[(values < 0) | (values >= stop)]).size:
            raise UsageError(f"{name} {wrong[0]}: there are {stop}, counted from 0")


_IN_USE: list[ref[Schedule]] = []
_MANY = 1 << 12  # shards from which on it is worth a look whether there is one already
_MOST = 16  # schedules that are looked through


def _schedule(lengths: Int64s, cycle_length: int, block_length: int) -> Schedule:
    """Return the schedule, one that is still in use where it is the same.

    What differs in its buffer alone reads alike.
    """
    if len(lengths) < _MANY:
        return build_schedule(lengths, cycle_length, block_length)
    for known in tuple(_IN_USE):
        made = known()
        if (
            made is not None
            and (made.cycle_length, made.block_length) == (cycle_length, block_length)
            and np.array_equal(made.lengths, lengths)
        ):
            return made
    made = build_schedule(lengths, cycle_length, block_length)
    in_use = [known for known in tuple(_IN_USE) if known() is not None]
    _IN_USE[:] = [*in_use, ref(made)][-_MOST:]
    return made


def _int64s(name: str, values: npt.ArrayLike) -> Int64s:
    """Return a one-dimensional array of integers as int64, without a copy where it is one."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UsageError(f"{name}: a one-dimensional array of integers is needed")
    return array.astype(np.int64, copy=False)
