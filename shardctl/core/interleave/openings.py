"""When each shard of an interleave opens: in the slot that comes free first."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np

from shardctl.core.arrays import Int64s, pieces

# A batch of openings takes about as long as so many steps of the heap, and its sort of C free keys
# as one step more for each so many of them.
_STEPS_A_BATCH = 24
_KEYS_A_STEP = 150
_PIECE = 1 << 14  # shards whose lists stay in the cache
_TRIED = 8  # batches before their size tells anything


def opening_keys(lengths: Int64s, block_length: int, free: list[int]) -> tuple[Int64s, list[int]]:
    """Return round * C + slot of the first visits to shards, int64[n], and the free keys after.

    `lengths` (int64[n]) are in the order of opening. `free` holds, for each of the C slots, such a
    key of the first visit that is free, ascending: 0 to C - 1 before anything is read. So
    lists that are read one after the other without a gap can be given one by one. A shard of L
    examples takes L // block_length + 1 visits. The keys are ascending, and have to be below 2**63;
    those that are free after may be larger.

    >>> keys, free = opening_keys(np.array([3, 0, 2, 1]), 2, [0, 1])
    >>> keys.tolist(), free
    ([0, 1, 3, 4], [6, 7])
    >>> opening_keys(np.array([3, 0]), 2, [0, 1])
    (array([0, 1]), [3, 4])
    """
    keys = np.zeros(len(lengths), np.int64)
    if not len(lengths):
        return keys, free
    fewest, most = int(lengths.min()) // block_length + 1, int(lengths.max()) // block_length + 1
    if len(free) == 1:
        np.cumsum(lengths[:-1] // block_length + 1, out=keys[1:])
        keys += free[0]
        return keys, [int(keys[-1]) + int(lengths[-1]) // block_length + 1]
    if fewest == most and free[-1] < free[0] + most * len(free):
        return _in_turn(keys, most * len(free), free)
    num_slots = len(free)
    piece = max(_PIECE, 4 * num_slots)
    for start in range(0, len(lengths), piece):
        visits = lengths[start : start + piece] // block_length + 1
        done, free = _in_batches(keys[start : start + piece], visits, free)
        keys[start + done : start + piece] = [
            heapreplace(free, free[0] + count * num_slots) for count in visits[done:].tolist()
        ]
        free.sort()
    return keys, free


def _in_turn(keys: Int64s, step: int, free: list[int]) -> tuple[Int64s, list[int]]:
    """Open shards that are alike: the slots come free in turn, as those of most datasets do."""
    num_slots = len(free)
    first = np.array(free[: len(keys)], np.int64)
    for piece in pieces(len(keys)):
        turns, slots = np.divmod(np.arange(piece.start, piece.stop), num_slots)
        keys[piece] = turns * step + first[slots]
    turns_done, slot = divmod(len(keys), num_slots)
    rest = [key + turns_done * step for key in free[slot:]]
    return keys, rest + [key + (turns_done + 1) * step for key in free[:slot]]


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
