"""Stretches of an interleave's reading order, made by whole blocks."""

from __future__ import annotations

import numpy as np

from shardctl.core.interleave_rounds import Int64s
from shardctl.core.interleave_schedule import Schedule

# Blocks up to this length are laid out whole and then masked; longer ones are cut first, so that
# memory stays with the stretch.
_LONGEST_DENSE_BLOCK = 4096


def read(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Return the ids (int64[stop - start]) of the positions [start, stop), 0 <= start <= stop <= n.

    Shard i yields first_ids[i], first_ids[i] + 1, ...

    >>> from shardctl.core.interleave_schedule import build_schedule
    >>> schedule = build_schedule(np.array([3, 3]), 2, 2)
    >>> read(schedule, 1, 6, np.array([10, 20])).tolist()
    [11, 20, 21, 12, 22]
    """
    if start == stop:
        return np.empty(0, dtype=np.int64)
    if schedule.cycle_length == 1:
        return _read_in_sequence(schedule, start, stop, first_ids)
    block_length = schedule.block_length
    visits, offsets = schedule.visits_at(np.array([start, stop - 1]))
    first_visit, stop_visit = int(visits[0]), int(visits[1]) + 1
    firsts = _first_ids_of_visits(schedule, first_visit, stop_visit, first_ids)

    # Which of these visits are the last of their shard, and what they yield.
    low, high = schedule.last_visit.searchsorted([first_visit, stop_visit])
    partial = schedule.last_visit[low:high] - first_visit
    partial_yield = schedule.last_yield[low - 1 : high - 1]
    num_cells = len(firsts) * block_length
    if block_length <= _LONGEST_DENSE_BLOCK and num_cells <= 2 * (stop - start + block_length):
        ids = _spread(firsts, block_length)
        if partial.size:
            yields = np.ones((len(firsts), block_length), dtype=bool)
            yields[partial] = np.arange(block_length) < partial_yield[:, None]
            ids = ids[yields.reshape(-1)]
        return ids[int(offsets[0]) :][: stop - start]
    counts = np.full(len(firsts), block_length)
    counts[partial] = partial_yield
    return _concatenate_runs(firsts, counts, int(offsets[0]), int(offsets[1]) + 1)


def _read_in_sequence(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Read with one slot: the shards one after the other, whatever the block length."""
    ends = schedule.position_after  # with one slot the last visits come in the order of opening
    low, high = ends.searchsorted([start, stop - 1], side="right") - 1
    counts = schedule.lengths[low : high + 1].copy()
    firsts = first_ids[low : high + 1].copy()
    return _concatenate_runs(firsts, counts, start - int(ends[low]), stop - int(ends[high]))


def _spread(firsts: Int64s, block_length: int) -> Int64s:
    """Return f, f + 1, ..., f + block_length - 1 for each f of `firsts`, in one array."""
    if block_length == 1:
        return firsts
    ids = np.empty((len(firsts), block_length), dtype=np.int64)
    if block_length <= 8:  # short rows cost more by rows than by columns
        for offset in range(block_length):
            np.add(firsts, offset, out=ids[:, offset])
    else:
        np.add(firsts[:, None], np.arange(block_length), out=ids)
    return ids.reshape(-1)


def _concatenate_runs(firsts: Int64s, counts: Int64s, skip: int, last_count: int) -> Int64s:
    """Return runs of consecutive ids; the first loses `skip`, the last is cut at `last_count`.

    `firsts` and `counts` (int64[runs]) are the caller's to give away: both are changed.
    """
    counts[-1] = last_count
    counts[0] -= skip
    firsts[0] += skip
    ends = np.cumsum(counts)
    ids = np.repeat(firsts - ends + counts, counts)
    ids += np.arange(len(ids))
    return ids


def _first_ids_of_visits(
    schedule: Schedule, first_visit: int, stop_visit: int, first_ids: Int64s
) -> Int64s:
    """Return the id that each visit would yield first; int64[stop_visit - first_visit]."""
    rounds = schedule.rounds
    (first_round, last_round), _ = rounds.places(np.array([first_visit, stop_visit - 1]))
    segment = int(rounds.first_round.searchsorted(first_round, side="right")) - 1
    if stop_visit - first_visit <= rounds.num_active[segment]:
        # Less than a round: one search a visit costs less than one a slot.
        visit_rounds, slots = rounds.places(np.arange(first_visit, stop_visit))
        return _first_ids_at(schedule, visit_rounds, slots, first_ids)
    full_rounds = int(first_round - rounds.first_round[segment])
    first_ordinal = int(rounds.first_ordinal[segment] + full_rounds * rounds.num_active[segment])
    pieces = []
    round_, stop_round = int(first_round), int(last_round) + 1
    while round_ < stop_round:
        # A piece ends before the active slots have halved, so at least half its cells are visits.
        num_active = rounds.num_active[segment]
        segment = int(np.searchsorted(-2 * rounds.num_active, -num_active, side="right"))
        piece_stop = min(stop_round, int(rounds.first_round[segment]))
        pieces.append(_first_ids_of_rounds(schedule, round_, piece_stop, first_ids))
        round_ = piece_stop
    firsts = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return firsts[first_visit - first_ordinal :][: stop_visit - first_visit]


def _first_ids_at(schedule: Schedule, rounds: Int64s, slots: Int64s, first_ids: Int64s) -> Int64s:
    shards = schedule.occupants(rounds, slots)
    blocks = rounds - schedule.first_round[shards]
    return first_ids[shards] + blocks * schedule.block_length


def _first_ids_of_rounds(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Return the first id of every visit of the rounds [start, stop), in visiting order.

    Along a slot the first id grows by the block length from round to round and jumps where a
    shard opens: a running sum of increments, laid out slot by slot and then transposed.
    """
    stops, block_length, num_rounds = schedule.rounds.stops, schedule.block_length, stop - start
    slots = np.flatnonzero(stops > start)
    # Rows of odd length: powers of two would share few cache sets in the transposition.
    firsts = np.full((len(slots), num_rounds | 1), block_length)
    firsts[:, 0] = _first_ids_at(schedule, np.full(len(slots), start), slots, first_ids)
    # Shards opening in later rounds of the stretch; none do once a slot has stopped, so that a
    # slot is its own row here.
    opening = slice(
        schedule.first_round.searchsorted(start, side="right"),
        schedule.first_round.searchsorted(stop, side="left"),
    )
    before = schedule.previous[opening]
    last_block = schedule.lengths[before] // block_length * block_length
    firsts[schedule.slot[opening], schedule.first_round[opening] - start] = (
        first_ids[opening] - first_ids[before] - last_block
    )
    firsts = firsts[:, :num_rounds]
    np.cumsum(firsts, axis=1, out=firsts)
    by_round = np.ascontiguousarray(firsts.T)
    if stops[slots].min() < stop:
        return by_round[np.arange(start, stop)[:, None] < stops[slots]]
    return by_round.reshape(-1)
