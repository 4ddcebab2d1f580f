"""Stretches of an interleave's reading order, made by whole blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.core.arrays import Int64s, keep_freed_memory
from shardctl.core.interleave.runs import Runs
from shardctl.core.interleave.schedule import Schedule

# Blocks up to this length are laid out whole and what they do not yield is masked; longer ones are
# made as runs, which cost more for 1 or 2 ids at a time and less from about 5.
_LONGEST_DENSE_BLOCK = 4
_RAMP = np.arange(1 << 14)
# Ids made at a time: few enough that what is made on the way stays in the cache.
_PIECE = 1 << 18
_VISITS = 1 << 16  # visits made at a time, for the same reason


def read(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Return the ids (int64[stop - start]) of the positions [start, stop), 0 <= start <= stop <= n.

    Shard i yields first_ids[i], first_ids[i] + 1, ...

    >>> from shardctl.core.interleave.schedule import build_schedule
    >>> schedule = build_schedule(np.array([3, 3]), 2, 2)
    >>> read(schedule, 1, 6, np.array([10, 20])).tolist()
    [11, 20, 21, 12, 22]
    """
    read_piece = _read_in_sequence if schedule.cycle_length == 1 else _read_in_turns
    if start < stop <= start + _PIECE:
        return read_piece(schedule, start, stop, first_ids)
    ids = np.empty(stop - start, dtype=np.int64)
    for begin in range(start, stop, _PIECE):
        end = min(begin + _PIECE, stop)
        ids[begin - start : end - start] = read_piece(schedule, begin, end, first_ids)
    return ids


def visits(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Iterator[Runs]:
    """Yield (first id, how many), int64[v] each, of the visits at [start, stop), piece by piece.

    That is what `read` returns before visits become ids: its cost is that of visits. Visits that
    yield nothing are left out; the first and the last are cut. With one slot whole shards come.

    >>> from shardctl.core.interleave.schedule import build_schedule
    >>> schedule = build_schedule(np.array([3, 3]), 2, 2)
    >>> [[x.tolist() for x in piece] for piece in visits(schedule, 1, 6, np.array([10, 20]))]
    [[[11, 20, 12, 22], [1, 2, 1, 1]]]
    """
    keep_freed_memory()
    in_sequence = schedule.cycle_length == 1
    cut = _visits_in_sequence if in_sequence else _visits_in_turns
    while start < stop:
        end = min(stop, _end_of_visits(schedule, start, in_sequence=in_sequence))
        firsts, counts = cut(schedule, start, end, first_ids)
        if not counts.all():
            kept = counts > 0
            firsts, counts = firsts[kept], counts[kept]
        yield firsts, counts
        start = end


def _end_of_visits(schedule: Schedule, start: int, *, in_sequence: bool) -> int:
    """Return a position that comes many visits after `start`, in the order `visits` has them."""
    if in_sequence:
        place = int(schedule.position_after.searchsorted(start, side="right")) + _VISITS
        return int(schedule.position_after[min(place, len(schedule.lengths))])
    (visit,), _ = schedule.visits_at(np.array([start]))
    # Visits that yield nothing may be all there are.
    while int(schedule.last_visit[-1]) > visit + _VISITS:
        visit += _VISITS
        end = int(schedule.positions_of(np.array([visit]))[0])
        if end > start:
            return end
    return schedule.num_examples


def _read_in_turns(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Read the visits of the stretch (not empty) as whole blocks, less what they do not yield."""
    block_length = schedule.block_length
    if block_length > _LONGEST_DENSE_BLOCK:
        return _concatenated(*_visits_in_turns(schedule, start, stop, first_ids))
    firsts, partial, partial_yield, (skip, _) = _visited(schedule, start, stop, first_ids)
    ids = _whole_blocks(firsts, block_length)
    if partial.size:
        is_read = np.ones((len(firsts), block_length), dtype=bool)
        is_read[partial] = np.arange(block_length) < partial_yield[:, None]
        ids = ids[is_read]
    return ids.reshape(-1)[skip:][: stop - start]


def _read_in_sequence(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Read with one slot: the shards one after the other, whatever the block length."""
    return _concatenated(*_visits_in_sequence(schedule, start, stop, first_ids))


def _visits_in_turns(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Runs:
    """Return the visits of the stretch (not empty), those that yield nothing as well."""
    firsts, partial, partial_yield, ends = _visited(schedule, start, stop, first_ids)
    counts = np.full(len(firsts), schedule.block_length)
    counts[partial] = partial_yield
    return _cut(firsts, counts, *ends)


def _visited(
    schedule: Schedule, start: int, stop: int, first_ids: Int64s
) -> tuple[Int64s, Int64s, Int64s, tuple[int, int]]:
    """Return the visits of a stretch (not empty): their first ids, and which are partial.

    All others yield a full block; with what those yield, and (what comes of the first visit before
    the stretch, where in the last visit it ends).
    """
    visits, offsets = schedule.visits_at(np.array([start, stop - 1]))
    first_visit, stop_visit = int(visits[0]), int(visits[1]) + 1
    firsts = _first_ids_of_visits(schedule, first_visit, stop_visit, first_ids)
    # Which of these visits are the last of their shard. `last_visit` begins with -1, so the count
    # of last visits is one behind it.
    low, high = schedule.last_visit.searchsorted([first_visit, stop_visit])
    partial = schedule.last_visit[low:high] - first_visit
    yields = schedule.last_yields(low - 1, high - 1)
    return firsts, partial, yields, (int(offsets[0]), int(offsets[1]) + 1)


def _visits_in_sequence(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Runs:
    """Return the shards of a stretch (not empty), empty ones as well."""
    ends = schedule.position_after  # with one slot the last visits come in the order of opening
    low, high = ends.searchsorted([start, stop - 1], side="right") - 1
    counts = schedule.lengths[low : high + 1].copy()
    firsts = first_ids[low : high + 1].copy()
    return _cut(firsts, counts, start - int(ends[low]), stop - int(ends[high]))


def _cut(firsts: Int64s, counts: Int64s, skip: int, last_count: int) -> Runs:
    """Cut visits: the first loses `skip`, the last one ends at `last_count`; both are changed."""
    counts[-1] = last_count
    counts[0] -= skip
    firsts[0] += skip
    return firsts, counts


def _whole_blocks(firsts: Int64s, block_length: int) -> Int64s:
    """Return the blocks that begin with `firsts` (int64[visits]); int64[visits, block_length]."""
    ids = firsts[:, None]
    if block_length > 1:  # by columns: rows this short cost a loop each
        ids = np.empty((len(firsts), block_length), dtype=np.int64)
        for offset in range(block_length):
            np.add(firsts, offset, out=ids[:, offset])
    return ids


def _concatenated(firsts: Int64s, counts: Int64s) -> Int64s:
    """Return runs of consecutive ids, `firsts` and `counts` (int64[runs]), one after the other."""
    ends = np.cumsum(counts)
    # Each id is its index in the result plus (first of the run - index where the run begins).
    ids = np.repeat(firsts - ends + counts, counts)
    # Counting on in pieces that stay in the cache: a second array of this size would double the
    # time, most of it spent by the system on handing out its pages.
    for begin in range(0, len(ids), len(_RAMP)):
        piece = ids[begin : begin + len(_RAMP)]
        piece += _RAMP[: len(piece)] + begin
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
    shards, first_rounds = schedule.occupants(rounds, slots)
    blocks = rounds - first_rounds
    return first_ids[shards] + blocks * schedule.block_length


def _first_ids_of_rounds(schedule: Schedule, start: int, stop: int, first_ids: Int64s) -> Int64s:
    """Return the first id of every visit of the rounds [start, stop), in visiting order.

    Along a slot the first id grows by the block length from round to round and jumps where a
    shard opens.
    """
    stops, block_length, num_rounds = schedule.rounds.stops, schedule.block_length, stop - start
    slots = np.flatnonzero(stops > start)
    begin = _first_ids_at(schedule, np.full(len(slots), start), slots, first_ids)
    # Shards opening in later rounds of the stretch; none do once a slot has stopped, so that a
    # slot is its own row here.
    opening = slice(
        schedule.opened_before(start + 1),
        schedule.opened_before(stop),
    )
    # A round earlier its slot made the last visit to the shard before, just after its full blocks.
    before = schedule.previous[opening]
    last_block = schedule.lengths[before] // block_length * block_length
    opening_rounds, opening_slots = np.divmod(schedule.opening[opening], schedule.cycle_length)
    opening_rounds -= start
    steps = first_ids[opening] - first_ids[before] - last_block
    if len(steps) <= len(slots):
        # Few shards open: what comes behind each is moved as a whole.
        by_round = np.arange(0, num_rounds * block_length, block_length)[:, None] + begin
        jumps = (steps - block_length).tolist()
        for round_, slot, jump in zip(
            opening_rounds.tolist(), opening_slots.tolist(), jumps, strict=True
        ):
            by_round[round_:, slot] += jump
    else:
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
