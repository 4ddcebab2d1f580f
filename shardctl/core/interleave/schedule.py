"""When each shard of an interleave is opened, where, and how positions map to its visits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s, exact_sum, is_ascending, last_not_above, pieces
from shardctl.core.interleave.openings import opening_keys
from shardctl.core.interleave.rounds import Rounds
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

    @property
    def first_round(self) -> Int64s:
        """The round in which each shard is opened, int64[n], nondecreasing, read-only."""
        rounds = self.opening // self.cycle_length
        rounds.setflags(write=False)
        return rounds

    @property
    def slot(self) -> Int64s:
        """The slot in which each shard is opened, int64[n], read-only."""
        slots = self.opening % self.cycle_length
        slots.setflags(write=False)
        return slots

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
    >>> schedule.first_round.tolist(), schedule.slot.tolist()
    ([0, 0, 1, 2], [0, 1, 1, 0])
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
        opening, _ = opening_keys(lengths, block_length, list(range(cycle_length)))
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
