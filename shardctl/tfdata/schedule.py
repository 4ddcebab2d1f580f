"""When each shard of an interleave is opened, where, and how positions map to its visits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, exact_sum, groups_of, is_ascending, last_not_above, pieces
from shardctl.errors import UsageError

# Numbers of shards, of which there are fewer than 2**31, where there are as many as shards.
_Shards = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """The two integers that fix where a shard is read, and the search tables over them.

    A shard of L examples occupies L // block_length + 1 visits of its slot: the last one yields
    L % block_length examples, 0 among them, every other one a full block. The two integers are the
    round and the slot of its first visit, kept as one, `opening`: round * cycle_length + slot.
    `cycle_length` and `block_length` are those that matter: no more slots than shards, no block
    longer than the longest shard + 1.

    Only last visits break the regular order: between two of them every visit yields a full block,
    so a position is found by one search among the positions just after them. `last_visit` (their
    ordinals, increasing) and `position_after` begin with -1 and 0, the start.

    All arrays are int64, but for numbers of shards. With ten million shards each takes 80 MB, so
    that what follows from the others is not kept.
    """

    lengths: Int64s  # [n]
    cycle_length: int
    block_length: int
    opening: Int64s  # [n], increasing
    by_slot: _Shards  # [n], shards by (slot, first_round)
    by_slot_key: Int64s  # [n], slot * (last opening round + 1) + first_round of those
    rounds: Rounds
    last_visit: Int64s  # [n + 1]
    position_after: Int64s  # [n + 1]

    @cached_property
    def previous(self) -> _Shards:
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

    @property
    def num_examples(self) -> int:
        """Number of positions."""
        return int(self.position_after[-1])

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

    def occupants(self, rounds: Int64s, slots: Int64s) -> tuple[_Shards, Int64s]:
        """Return the shard opened last in each slot up to and including the round, and when."""
        # One sorted key for (slot, round). Later rounds have the last shard of their slot, and are
        # cut to the last opening round so that the key neither overflows nor reaches the next slot.
        stride = self.opening[-1] // self.cycle_length + 1
        first_keys = slots * stride
        keys = first_keys + np.minimum(rounds, stride - 1)
        places = last_not_above(self.by_slot_key, keys)
        return self.by_slot[places], self.by_slot_key[places] - first_keys


def build_schedule(lengths: Int64s, cycle_length: int, block_length: int) -> Schedule:
    """Return the schedule of shards of these lengths (int64[n]); UsageError for a bad number.

    Source of the rule: tensorflow/core/kernels/data/interleave_dataset_op.cc, whose order the
    parallel interleave keeps when it is deterministic.

    >>> schedule = build_schedule(np.array([3, 0, 2, 1]), 2, 2)
    >>> [column.tolist() for column in np.divmod(schedule.opening, 2)]
    [[0, 0, 1, 2], [0, 1, 1, 0]]
    """
    if cycle_length < 1:
        raise UsageError(f"cycle_length {cycle_length}: at least 1 shard is open at a time")
    if block_length < 1:
        raise UsageError(f"block_length {block_length}: a block has at least 1 example")
    num_shards = len(lengths)
    if num_shards and int(lengths.min()) < 0:
        raise UsageError(f"{int(lengths.min())} examples: a shard's length is 0 or more")
    # A bound for positions, visits and search keys alike; summed as Python integers, since the sum
    # of int64 would wrap around before it could be compared.
    if exact_sum(lengths) + 2 * num_shards >= 2**63:
        raise UsageError(f"{exact_sum(lengths)} examples: positions are 63-bit integers")
    # A longer cycle or block than the shards can fill changes no order, but products of it would
    # overflow.
    cycle_length = max(1, min(cycle_length, num_shards))
    block_length = min(block_length, int(lengths.max(initial=0)) + 1)

    if cycle_length == num_shards:
        opening = np.arange(num_shards)
    else:  # each further shard opens in the slot that comes free first
        opening = opening_keys(lengths, block_length, cycle_length)
    opening.setflags(write=False)
    rounds = Rounds.until(_stops(lengths, opening, cycle_length, block_length))
    # What needs the most room on the way comes first.
    last_visit, position_after = _last_visits(lengths, opening, rounds, cycle_length, block_length)
    by_slot, by_slot_key = _by_slot(opening, cycle_length)
    return Schedule(
        lengths=lengths,
        cycle_length=cycle_length,
        block_length=block_length,
        opening=opening,
        by_slot=by_slot,
        by_slot_key=by_slot_key,
        rounds=rounds,
        last_visit=last_visit,
        position_after=position_after,
    )


def _stops(lengths: Int64s, opening: Int64s, cycle_length: int, block_length: int) -> Int64s:
    """Return the round from which on each slot is idle, int64[cycle_length]."""
    stops = np.ones(cycle_length, np.int64)
    for piece in pieces(len(lengths)):
        rounds, slots = np.divmod(opening[piece], cycle_length)
        # The last shard of a slot decides when the slot stops: the last assignment stays.
        stops[slots] = rounds + lengths[piece] // block_length + 1
    return stops


def _by_slot(opening: Int64s, cycle_length: int) -> tuple[_Shards, Int64s]:
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
_PIECE = 1 << 14  # shards whose lists stay in the cache
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
    size = max(_PIECE, 4 * num_slots)
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
