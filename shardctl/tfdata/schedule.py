"""When each shard of an interleave is opened, and where; the visits of its slots, counted."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, groups_of, is_ascending, pieces

# Numbers of shards, of which there are fewer than 2**31, where there are as many as shards.
Shards = NDArray[np.int32]


def stops_of(lengths: Int64s, opening: Int64s, cycle_length: int, block_length: int) -> Int64s:
    """Return the round from which on each slot is idle, int64[cycle_length]."""
    stops = np.ones(cycle_length, np.int64)
    for piece in pieces(len(lengths)):
        rounds, slots = np.divmod(opening[piece], cycle_length)
        # The last shard of a slot decides when the slot stops: the last assignment stays.
        stops[slots] = rounds + lengths[piece] // block_length + 1
    return stops


def by_slot_of(opening: Int64s, cycle_length: int) -> tuple[Shards, Int64s]:
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


def last_visits_of(
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
