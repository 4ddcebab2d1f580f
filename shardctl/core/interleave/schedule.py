"""When each shard of an interleave is opened, where, and how positions map to its visits."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.rounds import Rounds
from shardctl.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Schedule:
    """The two integers that fix where a shard is read, and the search tables over them.

    A shard of L examples occupies L // block_length + 1 visits of its slot: the last one yields
    L % block_length examples, 0 among them, every other one a full block. All arrays are int64.
    `cycle_length` and `block_length` are those that matter: no more slots than shards, no block
    longer than the longest shard + 1.

    Only last visits break the regular order: between two of them every visit yields a full block,
    so a position is found by one search among the positions just after them. `last_visit` (their
    ordinals, increasing) and `position_after` begin with -1 and 0, the start.
    """

    lengths: Int64s  # [n]
    cycle_length: int
    block_length: int
    first_round: Int64s  # [n], nondecreasing, and with it (first_round, slot)
    slot: Int64s  # [n]
    previous: Int64s  # [n], the shard before this one in its slot; meaningless for the first
    by_slot: Int64s  # [n], shards by (slot, first_round)
    by_slot_key: Int64s  # [n], slot * (last opening round + 1) + first_round of those
    rounds: Rounds
    last_visit: Int64s  # [n + 1]
    last_yield: Int64s  # [n], the examples of each last visit, in the order of `last_visit`
    position_after: Int64s  # [n + 1]

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

    def occupants(self, rounds: Int64s, slots: Int64s) -> Int64s:
        """Return the shard opened last in each slot up to and including the round."""
        # One sorted key for (slot, round). Later rounds have the last shard of their slot, and are
        # cut to the last opening round so that the key neither overflows nor reaches the next slot.
        stride = self.first_round[-1] + 1
        keys = slots * stride + np.minimum(rounds, stride - 1)
        shards: Int64s = self.by_slot[self.by_slot_key.searchsorted(keys, side="right") - 1]
        return shards


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
    if sum(lengths.tolist()) + 2 * num_shards >= 2**63:
        raise UsageError(f"{sum(lengths.tolist())} examples: positions are 63-bit integers")
    # A longer cycle or block than the shards can fill changes no order, but products of it would
    # overflow.
    cycle_length = max(1, min(cycle_length, num_shards))
    block_length = min(block_length, int(lengths.max(initial=0)) + 1)

    visits = lengths // block_length + 1
    first_round, slot = np.divmod(_opening_keys(visits, cycle_length), cycle_length)
    # The last shard of a slot decides when the slot stops: the last assignment stays.
    stops = np.ones(cycle_length, dtype=np.int64)
    stops[slot] = first_round + visits
    rounds = Rounds.until(stops)

    # Stable, so that the shards of a slot stay in the order of opening.
    by_slot = np.argsort(slot, kind="stable")
    previous = np.zeros_like(by_slot)
    previous[by_slot[1:]] = by_slot[:-1]
    stride = int(first_round.max(initial=0)) + 1

    last_visit = rounds.ordinals(first_round + visits - 1, slot)
    by_last_visit = np.argsort(last_visit)
    last_visit = np.concatenate([[-1], last_visit[by_last_visit]])
    last_yield = (lengths % block_length)[by_last_visit]
    # Sums of true yields, never ordinal * block_length - deficits, which can exceed 63 bits.
    between = (np.diff(last_visit) - 1) * block_length + last_yield
    schedule = Schedule(
        lengths=lengths,
        cycle_length=cycle_length,
        block_length=block_length,
        first_round=first_round,
        slot=slot,
        previous=previous,
        by_slot=by_slot,
        by_slot_key=slot[by_slot] * stride + first_round[by_slot],
        rounds=rounds,
        last_visit=last_visit,
        last_yield=last_yield,
        position_after=np.concatenate([[0], np.cumsum(between)]),
    )
    for array in (first_round, slot):
        array.setflags(write=False)
    return schedule


def _opening_keys(visits: Int64s, cycle_length: int) -> Int64s:
    """Return round * cycle_length + slot of each shard's first visit; int64[n], increasing.

    Each further shard opens in the slot that comes free first, so a heap of the slots' next free
    keys gives the keys in order. No slot has stopped before the last opening, so keys up to there
    are ordinals and fit 63 bits; the pushed ones may not, and are Python integers.
    """
    num_shards = len(visits)
    if cycle_length == num_shards:
        return np.arange(num_shards)
    if cycle_length == 1:
        return np.cumsum(visits) - visits
    free = list(range(cycle_length))
    keys = [heapreplace(free, free[0] + count * cycle_length) for count in visits.tolist()]
    return np.array(keys, dtype=np.int64)
