"""The interleave of tf.data as a value: any position answered, any stretch read, no file opened."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shardctl.base.arrays import (
    Int64s,
    exact_sum,
    groups_of,
    is_ascending,
    last_not_above,
    pieces,
    spans,
)
from shardctl.errors import UsageError

# Numbers of shards, of which there are fewer than 2**31, where there are as many as shards.
Shards = NDArray[np.int32]

# A position costs 1 ns to read in sequence and 1.5 to 5 in turns, and 50 to 110 to look up.
_SPARSE_IN_SEQUENCE = 100
_SPARSE = 32
_LOOKED_UP = 1 << 16  # positions looked up at a time, and read at a time: what fits in the cache
_READ = 1 << 18
# Blocks up to this length are laid out whole and what they do not yield is masked; longer ones are
# made as runs, which cost more for 1 or 2 ids at a time and less from about 5.
_LONGEST_DENSE_BLOCK = 4
_RAMP = np.arange(1 << 14)
# Ids made at a time: few enough that what is made on the way stays in the cache.
_PIECE = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class InterleaveState:
    """What is in the slots of an interleave, the slot that yields next coming first.

    `slots` holds (shard, examples read of it) for each slot, shards numbered in the order of
    opening, or (None, 0) for a free slot: free slots take the next unopened shards, as long as
    there are any. `block_offset` examples of the current block are yielded; `next_shard` is the
    first shard not opened yet. After the last example every slot is free and no shard is left.
    """

    slots: tuple[tuple[int | None, int], ...]
    block_offset: int
    next_shard: int


class Interleave:
    """The order in which `interleave` reads shards, from the examples that each yields.

    `lengths` is int64[n], in the order of opening; a length may be 0, as may n. The order is that
    of `tf.data.Dataset.interleave` with these `cycle_length` and `block_length`, sequential or
    deterministic in parallel (tensorflow/core/kernels/data/interleave_dataset_op.cc). Shards are
    numbered in the order of opening. Immutable; building costs a heap step and two sorts a shard,
    nothing an example. Positions and shards are those that there are, as who asks makes sure.

    A shard of L examples occupies L // block_length + 1 visits of its slot: the last one yields
    L % block_length examples, 0 among them, every other one a full block. Two integers fix where a
    shard is read, the round and the slot of its first visit, kept as one, `opening`:
    round * cycle_length + slot. `cycle_length` and `block_length` are those that matter: no more
    slots than shards, no block longer than the longest shard + 1.

    Only last visits break the regular order: between two of them every visit yields a full block,
    so a position is found by one search among the positions just after them. `last_visit` (their
    ordinals, increasing) and `position_after` begin with -1 and 0, the start.

    All arrays are int64, but for numbers of shards. With ten million shards each takes 80 MB, so
    that what follows from the others is not kept.

    Raises:
        UsageError: the positions are no 63-bit integers.

    >>> order = Interleave([3, 0, 2, 1], cycle_length=2, block_length=2)
    >>> shard, offset = order.locate(np.arange(order.num_examples))
    >>> list(zip(shard.tolist(), offset.tolist()))
    [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (3, 0)]
    >>> order.read(1, 4, first_ids=np.array([0, 10, 20, 30])).tolist()
    [1, 2, 20]
    """

    lengths: Int64s  # [n]
    cycle_length: int
    block_length: int
    opening: Int64s  # [n], increasing
    by_slot: Shards  # [n], shards by (slot, first_round)
    by_slot_key: Int64s  # [n], slot * (last opening round + 1) + first_round of those
    rounds: Rounds
    last_visit: Int64s  # [n + 1]
    position_after: Int64s  # [n + 1]

    def __init__(self, lengths: ArrayLike, *, cycle_length: int, block_length: int) -> None:
        lengths = np.asarray(lengths, np.int64)
        if lengths.flags.writeable:  # whoever holds it could change what is kept here
            lengths = lengths.copy()
        num_shards = len(lengths)
        # A bound for positions, visits and search keys alike; summed as Python integers, since the
        # sum of int64 would wrap around before it could be compared.
        if exact_sum(lengths) + 2 * num_shards >= 2**63:
            raise UsageError(f"{exact_sum(lengths)} examples: positions are 63-bit integers")
        # A longer cycle or block than the shards can fill changes no order, but products of it
        # would overflow.
        cycle_length = max(1, min(cycle_length, num_shards))
        block_length = min(block_length, int(lengths.max(initial=0)) + 1)
        self.lengths, self.cycle_length, self.block_length = lengths, cycle_length, block_length
        if cycle_length == num_shards:
            self.opening = np.arange(num_shards)
        else:  # each further shard opens in the slot that comes free first
            self.opening = opening_keys(lengths, block_length, cycle_length)
        self.opening.setflags(write=False)
        self.rounds = Rounds.until(_stops(lengths, self.opening, cycle_length, block_length))
        # What needs the most room on the way comes first.
        self.last_visit, self.position_after = _last_visits(
            lengths, self.opening, self.rounds, cycle_length, block_length
        )
        self.by_slot, self.by_slot_key = _by_slot(self.opening, cycle_length)

    def __repr__(self) -> str:
        return f"<Interleave of {self.num_examples} examples in {self.num_shards} shards>"

    @property
    def num_examples(self) -> int:
        """Number of positions."""
        return int(self.position_after[-1])

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return len(self.lengths)

    def slots_of(self, shards: Int64s) -> Int64s:
        """Return the slot in which each of these shards is opened, int64[q]."""
        return self.opening[shards] % self.cycle_length

    def locate(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (shard, offset in what the shard yields), each int64[q], of positions int64[q]."""
        visits, offsets = self.visits_at(positions)
        rounds, slots = self.rounds.places(visits)
        # Without shards there are no occupants to look among; nor are there positions then.
        if not len(positions):
            return positions, offsets
        shards, first_rounds = self.occupants(rounds, slots)
        return (shards.astype(np.int64), (rounds - first_rounds) * self.block_length + offsets)

    def position(self, shards: Int64s, offsets: Int64s) -> Int64s:
        """Return the position (int64[q]) of each (shard, offset): the inverse of `locate`."""
        blocks, in_block = np.divmod(offsets, self.block_length)
        first_rounds, slots = np.divmod(self.opening[shards], self.cycle_length)
        visits = self.rounds.ordinals(first_rounds + blocks, slots)
        return self.positions_of(visits) + in_block

    def read(self, start: int, stop: int, first_ids: Int64s) -> Int64s:
        """Return the ids (int64[stop - start]) at the positions [start, stop), in reading order.

        `first_ids` (int64[n]) is the id of the first example that each shard yields; the others
        count on from it.
        """
        # With one slot the shards come one after the other, whatever the block length.
        read_piece = self._read_in_sequence if self.cycle_length == 1 else self._read_in_turns
        if start < stop <= start + _PIECE:
            return read_piece(start, stop, first_ids)
        ids = np.empty(stop - start, dtype=np.int64)
        for begin, end in spans(start, stop, _PIECE):
            ids[begin - start : end - start] = read_piece(begin, end, first_ids)
        return ids

    def read_every(self, step: int, start: int, stop: int, first_ids: Int64s) -> Int64s:
        """Return `read(start, stop, first_ids)[::step]`, in the memory of the answer.

        Where few ids are wanted of many, each is looked up by itself.
        """
        wanted = range(start, stop, step)
        is_sparse = step >= (_SPARSE_IN_SEQUENCE if self.cycle_length == 1 else _SPARSE)
        size = _LOOKED_UP if is_sparse else max(1, _READ // step)
        found = np.empty(len(wanted), np.int64)
        for begin in range(0, len(wanted), size):
            piece = wanted[begin : begin + size]
            if is_sparse:
                shards, offsets = self.locate(piece[0] + np.arange(len(piece)) * step)
                np.add(first_ids[shards], offsets, out=found[begin : begin + size])
            else:
                read_on = self.read(piece[0], piece[-1] + 1, first_ids)
                found[begin : begin + size] = read_on[::step]
        return found

    def state(self, position: int) -> InterleaveState:
        """Return the state after `position` examples.

        Visits that yield nothing are skipped, so the first slot's next visit yields an example. The
        cost is a search a slot.

        >>> Interleave([3, 0, 2, 1], cycle_length=2, block_length=2).state(4)
        InterleaveState(slots=((2, 1), (None, 0)), block_offset=1, next_shard=3)
        """
        num_slots = self.cycle_length
        if position == self.num_examples:
            free = ((None, 0),) * num_slots
            return InterleaveState(slots=free, block_offset=0, next_shard=len(self.lengths))
        visit, (block_offset,) = self.visits_at(np.array([position]))
        (round_,), (slot,) = self.rounds.places(visit)

        # The next visit of every slot, in visiting order: slots before this one come a round later.
        slots = (slot + np.arange(num_slots)) % num_slots
        rounds = round_ + (slots < slot)
        shards, first_rounds = self.occupants(rounds, slots)
        # Capped for slots that have stopped: their last shard is read out, but rounds count on.
        blocks = rounds - first_rounds
        read = np.minimum(blocks * self.block_length, self.lengths[shards])
        read[0] += block_offset
        # A shard whose first visit is still to come is not open; a stopped slot never opens one.
        is_free = (rounds >= self.rounds.stops[slots]) | (blocks == 0)
        is_free[0] &= block_offset == 0

        low, high = self.opened_before(int(round_)), self.opened_before(int(round_) + 1)
        # The current slot's own opening counts once it has yielded.
        slots_opened = self.opening[low:high] % num_slots
        opened = low + slots_opened.searchsorted(slot + (block_offset > 0))
        found = zip(is_free.tolist(), shards.tolist(), read.tolist(), strict=True)
        return InterleaveState(
            slots=tuple((None, 0) if free else (shard, count) for free, shard, count in found),
            block_offset=int(block_offset),
            next_shard=int(opened),
        )

    def open_rest(self, position: int) -> tuple[Int64s, int]:
        """Return what is left in the slots, and the first of the shards that follow, all whole.

        Together they are the list whose fresh interleave reads the rest. What is left is
        int64[m, 3]: (shard, skip, take), m at most one more than there are slots.

        The interleave keeps its cycle and block length; skip counts from the start of the shard's
        own range. The slots come in turn, then the unopened shards. A block cut in the middle
        becomes an entry of its own: shorter than a block, it gives its slot up at once, and the
        rest of that shard comes next in the list, so it takes this slot (or, if slots are left
        over, the one after the open ones, which is the same place in the next round).
        """
        state = self.state(position)
        lengths, next_shard = self.lengths, state.next_shard
        entries: list[tuple[int, int, int]] = []
        for shard, read in state.slots:
            if shard is not None:
                entries.append((shard, read, int(lengths[shard]) - read))
            elif next_shard < len(lengths):
                entries.append((next_shard, 0, int(lengths[next_shard])))
                next_shard += 1
        if state.block_offset:
            shard, skip, rest = entries[0]
            to_complete = self.block_length - state.block_offset
            if rest >= to_complete:
                entries[0] = (shard, skip, to_complete)
                entries.append((shard, skip + to_complete, rest - to_complete))
        return np.array(entries, dtype=np.int64).reshape(-1, 3), next_shard

    def continuation(self, position: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (shard, skip, take), int64[m] each, whose fresh interleave reads the rest.

        See `open_rest`.

        >>> order = Interleave([3, 0, 2, 1], cycle_length=2, block_length=2)
        >>> [column.tolist() for column in order.continuation(4)]
        [[2, 3, 2], [1, 0, 2], [1, 1, 0]]
        """
        head, next_shard = self.open_rest(position)
        lengths = self.lengths
        unopened = np.arange(next_shard, len(lengths))
        return (
            np.concatenate([head[:, 0], unopened]),
            np.concatenate([head[:, 1], np.zeros_like(unopened)]),
            np.concatenate([head[:, 2], lengths[next_shard:]]),
        )

    # Visits: where they are, and which shard they are of.

    @cached_property
    def previous(self) -> Shards:
        """The shard before each one in its slot, [n]; meaningless for the first."""
        previous = np.zeros_like(self.by_slot)
        previous[self.by_slot[1:]] = self.by_slot[:-1]
        return previous

    def opened_before(self, round_: int) -> int:
        """Return how many shards are opened in the rounds before one."""
        # Later rounds open none, and their keys could be too large.
        last = int(self.opening[-1]) // self.cycle_length
        return int(self.opening.searchsorted(min(round_, last + 1) * self.cycle_length))

    def last_yields(self, low: int, high: int) -> Int64s:
        """Return the examples of the last visits [low, high), counted from the first one."""
        # What is yielded between two last visits, less the full blocks.
        visits = np.diff(self.last_visit[low : high + 1]) - 1
        yields: Int64s = np.diff(self.position_after[low : high + 1]) - visits * self.block_length
        return yields

    def visits_at(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the ordinal of the visit that yields each position, and the offset in its block.

        A position just after a last visit belongs to the next visit that yields: `side="right"`
        goes past every visit that yields nothing there.
        """
        after = self.position_after.searchsorted(positions, side="right") - 1
        block, offset = np.divmod(positions - self.position_after[after], self.block_length)
        return self.last_visit[after] + 1 + block, offset

    def positions_of(self, visits: Int64s) -> Int64s:
        """Return the number of examples yielded before each visit, given by its ordinal."""
        after = self.last_visit.searchsorted(visits, side="left") - 1
        num_full = visits - self.last_visit[after] - 1
        positions: Int64s = self.position_after[after] + num_full * self.block_length
        return positions

    def occupants(self, rounds: Int64s, slots: Int64s) -> tuple[Shards, Int64s]:
        """Return the shard opened last in each slot up to and including the round, and when."""
        # One sorted key for (slot, round). Later rounds have the last shard of their slot, and are
        # cut to the last opening round so that the key neither overflows nor reaches the next slot.
        stride = self.opening[-1] // self.cycle_length + 1
        first_keys = slots * stride
        keys = first_keys + np.minimum(rounds, stride - 1)
        places = last_not_above(self.by_slot_key, keys)
        return self.by_slot[places], self.by_slot_key[places] - first_keys

    # Stretches of the reading order, made by whole blocks.

    def _read_in_turns(self, start: int, stop: int, first_ids: Int64s) -> Int64s:
        """Read the visits of a stretch (not empty) as whole blocks, less what they do not yield."""
        block_length = self.block_length
        firsts, partial, partial_yield, (skip, end) = self._visited(start, stop, first_ids)
        if block_length > _LONGEST_DENSE_BLOCK:
            counts = np.full(len(firsts), block_length)
            counts[partial] = partial_yield
            return _concatenated(firsts, counts, skip, end)
        ids = np.empty((len(firsts), block_length), dtype=np.int64)
        for offset in range(block_length):  # by columns: rows this short cost a loop each
            np.add(firsts, offset, out=ids[:, offset])
        if partial.size:
            is_read = np.ones((len(firsts), block_length), dtype=bool)
            is_read[partial] = np.arange(block_length) < partial_yield[:, None]
            ids = ids[is_read]
        return ids.reshape(-1)[skip:][: stop - start]

    def _visited(
        self, start: int, stop: int, first_ids: Int64s
    ) -> tuple[Int64s, Int64s, Int64s, tuple[int, int]]:
        """Return the visits of a stretch (not empty): their first ids, and which are partial.

        All others yield a full block; with what those yield, and (what comes of the first visit
        before the stretch, where in the last visit it ends).
        """
        visits, offsets = self.visits_at(np.array([start, stop - 1]))
        first_visit, stop_visit = int(visits[0]), int(visits[1]) + 1
        firsts = self._first_ids_of_visits(first_visit, stop_visit, first_ids)
        # Which of these visits are the last of their shard. `last_visit` begins with -1, so the
        # count of last visits is one behind it.
        low, high = self.last_visit.searchsorted([first_visit, stop_visit])
        partial = self.last_visit[low:high] - first_visit
        yields = self.last_yields(low - 1, high - 1)
        return firsts, partial, yields, (int(offsets[0]), int(offsets[1]) + 1)

    def _read_in_sequence(self, start: int, stop: int, first_ids: Int64s) -> Int64s:
        """Read the shards of a stretch (not empty), empty ones as well."""
        ends = self.position_after  # with one slot the last visits come in the order of opening
        low, high = ends.searchsorted([start, stop - 1], side="right") - 1
        counts = self.lengths[low : high + 1].copy()
        firsts = first_ids[low : high + 1].copy()
        return _concatenated(firsts, counts, start - int(ends[low]), stop - int(ends[high]))

    def _first_ids_of_visits(self, first_visit: int, stop_visit: int, first_ids: Int64s) -> Int64s:
        """Return the id that each visit would yield first; int64[stop_visit - first_visit]."""
        rounds = self.rounds
        (first_round, last_round), _ = rounds.places(np.array([first_visit, stop_visit - 1]))
        segment = int(rounds.first_round.searchsorted(first_round, side="right")) - 1
        if stop_visit - first_visit <= rounds.num_active[segment]:
            # Less than a round: one search a visit costs less than one a slot.
            visit_rounds, slots = rounds.places(np.arange(first_visit, stop_visit))
            return self._first_ids_at(visit_rounds, slots, first_ids)
        full_rounds = int(first_round - rounds.first_round[segment])
        first_ordinal = int(
            rounds.first_ordinal[segment] + full_rounds * rounds.num_active[segment]
        )
        parts = []
        round_, stop_round = int(first_round), int(last_round) + 1
        while round_ < stop_round:
            # A piece ends before the active slots have halved: at least half its cells are visits.
            num_active = rounds.num_active[segment]
            segment = int(np.searchsorted(-2 * rounds.num_active, -num_active, side="right"))
            piece_stop = min(stop_round, int(rounds.first_round[segment]))
            parts.append(self._first_ids_of_rounds(round_, piece_stop, first_ids))
            round_ = piece_stop
        firsts = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return firsts[first_visit - first_ordinal :][: stop_visit - first_visit]

    def _first_ids_at(self, rounds: Int64s, slots: Int64s, first_ids: Int64s) -> Int64s:
        shards, first_rounds = self.occupants(rounds, slots)
        blocks = rounds - first_rounds
        return first_ids[shards] + blocks * self.block_length

    def _first_ids_of_rounds(self, start: int, stop: int, first_ids: Int64s) -> Int64s:
        """Return the first id of every visit of the rounds [start, stop), in visiting order.

        Along a slot the first id grows by the block length from round to round and jumps where a
        shard opens.
        """
        stops, block_length, num_rounds = self.rounds.stops, self.block_length, stop - start
        slots = np.flatnonzero(stops > start)
        begin = self._first_ids_at(np.full(len(slots), start), slots, first_ids)
        # Shards opening in later rounds of the stretch; none do once a slot has stopped, so that a
        # slot is its own row here.
        opening = slice(self.opened_before(start + 1), self.opened_before(stop))
        # A round earlier its slot made the last visit to the shard before, after its full blocks.
        before = self.previous[opening]
        last_block = self.lengths[before] // block_length * block_length
        opening_rounds, opening_slots = np.divmod(self.opening[opening], self.cycle_length)
        opening_rounds -= start
        steps = first_ids[opening] - first_ids[before] - last_block
        # A running sum of increments, laid out slot by slot and then transposed. Rows of odd
        # length: powers of two would share few cache sets in the transposition.
        firsts = np.full((len(slots), num_rounds | 1), block_length)
        firsts[:, 0] = begin
        firsts[opening_slots, opening_rounds] = steps
        firsts = firsts[:, :num_rounds]
        np.cumsum(firsts, axis=1, out=firsts)
        by_round = np.ascontiguousarray(firsts.T)
        # Slots that stop within the stretch have rows that count on: those cells are not visits.
        if stops[slots].min() < stop:
            return by_round[np.arange(start, stop)[:, None] < stops[slots]]
        return by_round.reshape(-1)


_IN_USE: WeakValueDictionary[tuple[int, int, bytes], Interleave] = WeakValueDictionary()
_MANY = 1 << 12  # shards from which on it is worth a look whether there is one already


def interleave_of(lengths: Int64s, *, cycle_length: int, block_length: int) -> Interleave:
    """Return an interleave, one that is still in use where it is the same.

    Orders that differ in their buffer alone have one.
    """
    if len(lengths) < _MANY:
        return Interleave(lengths, cycle_length=cycle_length, block_length=block_length)
    key = cycle_length, block_length, hashlib.blake2b(np.ascontiguousarray(lengths).data).digest()
    made = _IN_USE.get(key)
    if made is None:
        made = Interleave(lengths, cycle_length=cycle_length, block_length=block_length)
        _IN_USE[key] = made
    return made


def _concatenated(firsts: Int64s, counts: Int64s, skip: int, last_count: int) -> Int64s:
    """Return runs of consecutive ids, `firsts` and `counts` (int64[runs]), one after the other.

    The first loses `skip`, the last one ends at `last_count`; both arrays are changed.
    """
    counts[-1] = last_count
    counts[0] -= skip
    firsts[0] += skip
    ends = np.cumsum(counts)
    # Each id is its index in the result plus (first of the run - index where the run begins).
    ids = np.repeat(firsts - ends + counts, counts)
    # Counting on in pieces that stay in the cache: a second array of this size would double the
    # time, most of it spent by the system on handing out its pages.
    for begin in range(0, len(ids), len(_RAMP)):
        piece = ids[begin : begin + len(_RAMP)]
        piece += _RAMP[: len(piece)] + begin
    return ids


# When each shard is opened, and where.


def _stops(lengths: Int64s, opening: Int64s, cycle_length: int, block_length: int) -> Int64s:
    """Return the round from which on each slot is idle, int64[cycle_length]."""
    stops = np.ones(cycle_length, np.int64)
    for piece in pieces(len(lengths)):
        rounds, slots = np.divmod(opening[piece], cycle_length)
        # The last shard of a slot decides when the slot stops: the last assignment stays.
        stops[slots] = rounds + lengths[piece] // block_length + 1
    return stops


def _by_slot(opening: Int64s, cycle_length: int) -> tuple[Shards, Int64s]:
    """Return the shards by (slot, first_round) and their keys, int64[n] each."""
    num_shards = len(opening)
    # Small numbers are sorted by counting.
    small = np.uint16 if cycle_length < 1 << 16 else np.int32
    slots = np.empty(num_shards, small)
    for piece in pieces(num_shards):
        slots[piece] = opening[piece] % cycle_length
    # Stable, so that the shards of a slot stay in the order of opening.
    by_slot = np.argsort(slots, kind="stable").astype(np.int32)
    stride = int(opening[-1]) // cycle_length + 1 if num_shards else 1
    keys = np.empty(num_shards, np.int64)
    for piece in pieces(num_shards):
        rounds, slots_of_piece = np.divmod(opening[by_slot[piece]], cycle_length)
        keys[piece] = slots_of_piece * stride + rounds
    return by_slot, keys


def _last_visits(
    lengths: Int64s, opening: Int64s, rounds: Rounds, cycle_length: int, block_length: int
) -> tuple[Int64s, Int64s]:
    """Return the ordinals of the last visits, ascending, and the position after each.

    Both are int64[n + 1] and begin with the start, -1 and 0.
    """
    num_shards = len(lengths)
    visits = np.empty(num_shards, np.int64)
    for piece in pieces(num_shards):
        first_round, slot = np.divmod(opening[piece], cycle_length)
        visits[piece] = rounds.ordinals(first_round + lengths[piece] // block_length, slot)
    last_visit = np.empty(num_shards + 1, np.int64)
    last_visit[0] = -1
    if is_ascending(visits):  # as those of files that are alike
        shards = np.arange(num_shards)
        last_visit[1:] = visits
    else:
        shards = np.argsort(visits)
        np.take(visits, shards, out=last_visit[1:], mode="clip")  # another mode has a copy made
    del visits
    position_after = np.zeros(num_shards + 1, np.int64)
    for piece in pieces(num_shards):
        # Sums of true yields, never ordinal * block_length - deficits, which can exceed 63 bits.
        full = np.diff(last_visit[piece.start : piece.stop + 1]) - 1
        last_yields = lengths[shards[piece]] % block_length
        position_after[piece.start + 1 : piece.stop + 1] = full * block_length + last_yields
    np.cumsum(position_after, out=position_after)
    return last_visit, position_after


# Round-robin with slots that stop: the ordinal of each visit, and the visit of each ordinal.


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rounds:
    """Slots visited in turn, round after round, each until the round from which on it is idle.

    A visit is (round, slot); its ordinal counts the visits before it, from 0. Between two stops
    the active slots stay the same, so an ordinal is `first_ordinal + (round - first_round) *
    num_active + rank`, the rank being the number of active slots before this one. Nothing here
    multiplies a round by more slots than are active in it, so no int64 overflows while the visits
    themselves can be counted in one.

    `stops` is int64[slots], each at least 1; the segments are the stretches of rounds without a
    stop (`first_round`, `first_ordinal`, `num_active`: int64[segments], the last one has no slot).
    """

    stops: Int64s
    first_round: Int64s
    first_ordinal: Int64s
    num_active: Int64s

    @classmethod
    def until(cls, stops: Int64s) -> Rounds:
        """Return the rounds of slots that stop at `stops` (int64[slots], each >= 1).

        >>> rounds = Rounds.until(np.array([2, 1, 3]))  # visits: 0 1 2, 0 2, 2
        >>> [list(map(int, x)) for x in rounds.places(np.arange(6))]
        [[0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 2, 2]]
        >>> rounds.ordinals(np.array([1, 2]), np.array([2, 2])).tolist()
        [4, 5]
        """
        # The last of each run of equal stops: where it is, and how long the run was.
        ascending = np.sort(stops)
        last = np.flatnonzero(np.diff(ascending, append=ascending[-1:] + 1))
        borders, num_stopping = ascending[last], np.diff(last, prepend=-1)
        first_round = np.concatenate([[0], borders])
        num_active = len(stops) - np.concatenate([[0], np.cumsum(num_stopping)])
        visits = np.diff(first_round) * num_active[:-1]
        return cls(
            stops=stops,
            first_round=first_round,
            first_ordinal=np.concatenate([[0], np.cumsum(visits)]),
            num_active=num_active,
        )

    def ordinals(self, rounds: Int64s, slots: Int64s) -> Int64s:
        """Return how many visits come before (round, slot); both int64[q], of visits that exist."""
        # Before the first stop all slots are active. Products that wrap around are of later
        # rounds, the tail, and are replaced.
        ordinals = rounds * len(self.stops) + slots
        tail = np.flatnonzero(rounds >= self.first_round[1])
        segments = self.first_round.searchsorted(rounds[tail], side="right") - 1
        for segment, here in groups_of(segments):
            at, active = tail[here], self._active(segment)
            num_before = (rounds[at] - self.first_round[segment]) * len(active)
            ordinals[at] = self.first_ordinal[segment] + num_before + active.searchsorted(slots[at])
        return ordinals

    def places(self, ordinals: Int64s) -> tuple[Int64s, Int64s]:
        """Return (round, slot), both int64[q], of the visits with these ordinals (int64[q])."""
        rounds, slots = np.divmod(ordinals, len(self.stops))
        tail = np.flatnonzero(ordinals >= self.first_ordinal[1])
        # The last segment has no active slot and no visit: no ordinal falls into it.
        segments = self.first_ordinal[:-1].searchsorted(ordinals[tail], side="right") - 1
        for segment, here in groups_of(segments):
            at, active = tail[here], self._active(segment)
            full_rounds, rank = np.divmod(ordinals[at] - self.first_ordinal[segment], len(active))
            rounds[at], slots[at] = self.first_round[segment] + full_rounds, active[rank]
        return rounds, slots

    def _active(self, segment: int) -> Int64s:
        """Return the slots that are visited in the rounds of a segment, ascending."""
        active: Int64s = (self.stops > self.first_round[segment]).nonzero()[0]
        return active


# When each shard of an interleave opens: in the slot that comes free first.

# A batch of openings takes about as long as so many steps of the heap, and its sort of C free keys
# as one step more for each so many of them.
_STEPS_A_BATCH = 24
_KEYS_A_STEP = 150
_LISTED = 1 << 14  # shards whose lists stay in the cache
_TRIED = 8  # batches before their size tells anything


def opening_keys(lengths: Int64s, block_length: int, num_slots: int) -> Int64s:
    """Return round * num_slots + slot of the first visits to shards, int64[n], ascending.

    `lengths` (int64[n]) are in the order of opening; there are no fewer shards than slots. A shard
    of L examples takes L // block_length + 1 visits. The keys have to be below 2**63.

    >>> opening_keys(np.array([3, 0, 2, 1]), 2, 2).tolist()
    [0, 1, 3, 4]
    """
    keys = np.zeros(len(lengths), np.int64)
    if not len(lengths):
        return keys
    fewest, most = int(lengths.min()) // block_length + 1, int(lengths.max()) // block_length + 1
    if num_slots == 1:
        np.cumsum(lengths[:-1] // block_length + 1, out=keys[1:])
        return keys
    if fewest == most:  # the slots come free in turn, as those of most datasets do
        for piece in pieces(len(keys)):
            turns, slots = np.divmod(np.arange(piece.start, piece.stop), num_slots)
            keys[piece] = turns * (most * num_slots) + slots
        return keys
    free = list(range(num_slots))
    size = max(_LISTED, 4 * num_slots)
    for start in range(0, len(lengths), size):
        visits = lengths[start : start + size] // block_length + 1
        done, free = _in_batches(keys[start : start + size], visits, free)
        keys[start + done : start + size] = [
            heapreplace(free, free[0] + count * num_slots) for count in visits[done:].tolist()
        ]
        free.sort()
    return keys


def _in_batches(keys: Int64s, visits: Int64s, free: list[int]) -> tuple[int, list[int]]:
    """Open shards as long as many can be at once; return how many, and the free keys after.

    What opens before the first of them is read out opens in the free slots as they are. Where many
    slots take shards that are alike, that is nearly one a slot. Few are quicker by the heap.
    """
    num_slots, count = len(free), len(keys)
    least = _STEPS_A_BATCH + num_slots // _KEYS_A_STEP
    # The heap counts in Python integers, which do not wrap around.
    if num_slots < least or free[-1] + int(visits.max()) * count * num_slots >= 2**63:
        return 0, free
    steps, now = visits * num_slots, np.array(free)
    done = num_batches = 0
    while done < count:
        after = now[: count - done] + steps[done : done + num_slots]
        opened = int(now[: len(after)].searchsorted(after.min()))
        keys[done : done + opened] = now[:opened]
        now[:opened] = after[:opened]
        now.sort()
        done += opened
        num_batches += 1
        if num_batches >= _TRIED and done < least * num_batches:
            break
    return done, now.tolist()
