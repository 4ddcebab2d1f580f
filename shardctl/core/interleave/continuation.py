"""Resuming an interleave in the middle: which shards are open, and the list that reads the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.schedule import Schedule, build_schedule
from shardctl.errors import UsageError


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


def state_at(schedule: Schedule, position: int) -> InterleaveState:
    """Return the state after `position` examples; UsageError unless 0 <= position <= their number.

    Visits that yield nothing are skipped, so the first slot's next visit yields an example. The
    cost is a search a slot.

    >>> state_at(build_schedule(np.array([3, 0, 2, 1]), 2, 2), 4)
    InterleaveState(slots=((2, 1), (None, 0)), block_offset=1, next_shard=3)
    """
    if not 0 <= position <= schedule.num_examples:
        raise UsageError(f"position {position}: there are {schedule.num_examples} examples")
    num_slots = schedule.cycle_length
    if position == schedule.num_examples:
        free = ((None, 0),) * num_slots
        return InterleaveState(slots=free, block_offset=0, next_shard=len(schedule.lengths))
    visit, (block_offset,) = schedule.visits_at(np.array([position]))
    (round_,), (slot,) = schedule.rounds.places(visit)

    # The next visit of every slot, in visiting order: slots before this one come a round later.
    slots = (slot + np.arange(num_slots)) % num_slots
    rounds = round_ + (slots < slot)
    shards, first_rounds = schedule.occupants(rounds, slots)
    # Capped for slots that have stopped: their last shard is read out, but rounds count on.
    blocks = rounds - first_rounds
    read = np.minimum(blocks * schedule.block_length, schedule.lengths[shards])
    read[0] += block_offset
    # A shard whose first visit is still to come is not open; a stopped slot never opens one again.
    is_free = (rounds >= schedule.rounds.stops[slots]) | (blocks == 0)
    is_free[0] &= block_offset == 0

    low, high = schedule.opened_before(int(round_)), schedule.opened_before(int(round_) + 1)
    # The current slot's own opening counts once it has yielded.
    slots_opened = schedule.opening[low:high] % num_slots
    opened = low + slots_opened.searchsorted(slot + (block_offset > 0))
    return InterleaveState(
        slots=tuple(
            (None, 0) if free else (shard, count)
            for free, shard, count in zip(
                is_free.tolist(), shards.tolist(), read.tolist(), strict=True
            )
        ),
        block_offset=int(block_offset),
        next_shard=int(opened),
    )


def open_rest_at(schedule: Schedule, position: int) -> tuple[Int64s, int]:
    """Return what is left in the slots, and the first of the shards that follow, all of them whole.

    Together they are the list whose fresh interleave reads the rest. What is left is int64[m, 3]:
    (shard, skip, take), m at most one more than there are slots.

    The interleave keeps its cycle and block length; skip counts from the start of the shard's own
    range. The slots come in turn, then the unopened shards. A block cut in the middle becomes an
    entry of its own: shorter than a block, it gives its slot up at once, and the rest of that shard
    comes next in the list, so it takes this slot (or, if slots are left over, the one after the
    open ones, which is the same place in the next round).
    """
    state = state_at(schedule, position)
    lengths, next_shard = schedule.lengths, state.next_shard
    entries: list[tuple[int, int, int]] = []
    for shard, read in state.slots:
        if shard is not None:
            entries.append((shard, read, int(lengths[shard]) - read))
        elif next_shard < len(lengths):
            entries.append((next_shard, 0, int(lengths[next_shard])))
            next_shard += 1
    if state.block_offset:
        shard, skip, rest = entries[0]
        to_complete = schedule.block_length - state.block_offset
        if rest >= to_complete:
            entries[0] = (shard, skip, to_complete)
            entries.append((shard, skip + to_complete, rest - to_complete))
    return np.array(entries, dtype=np.int64).reshape(-1, 3), next_shard


def continuation_at(schedule: Schedule, position: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return (shard, skip, take), each int64[m]: the list whose fresh interleave reads the rest.

    See `open_rest_at`.
    """
    head, next_shard = open_rest_at(schedule, position)
    lengths = schedule.lengths
    unopened = np.arange(next_shard, len(lengths))
    return (
        np.concatenate([head[:, 0], unopened]),
        np.concatenate([head[:, 1], np.zeros_like(unopened)]),
        np.concatenate([head[:, 2], lengths[next_shard:]]),
    )


def continuation(
    lengths: npt.ArrayLike, cycle_length: int, block_length: int, consumed: int
) -> tuple[Int64s, Int64s, Int64s]:
    """Return (shard, skip, take) of the rest after `consumed` examples; see `continuation_at`.

    >>> [x.tolist() for x in continuation([3, 0, 2, 1], 2, 2, 4)]
    [[2, 3, 2], [1, 0, 2], [1, 1, 0]]
    """
    schedule = build_schedule(np.array(lengths, dtype=np.int64), cycle_length, block_length)
    return continuation_at(schedule, consumed)
