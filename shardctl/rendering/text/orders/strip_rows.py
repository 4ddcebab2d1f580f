"""The first blocks of an order as strips: names and hues of shards, ids, where batches begin."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from shardctl.core.order.order import Order
from shardctl.core.text import printable
from shardctl.planning.pictures.strips import Strips, Visit

_IDS = 8  # of a visit that are written one by one


def shard_name(visit: Visit, strips: Strips, longest: int) -> str:
    """Return what a shard is called: its number, after its split where there are several.

    The name of a split is cut where all would be longer than `longest` letters, the number is not.
    """
    if not strips.several_splits:
        return str(visit.shard)
    number = f":{visit.shard}"
    return printable(visit.split, max(1, longest - len(number))) + number


def hues_of(visits: Sequence[Visit], count: int) -> list[int]:
    """Return the hue of each visit's shard: another one than that of what is beside it.

    A shard has the same hue wherever it is read; a new one takes the next of `count`, but not the
    hue of the shard that was read in its slot, or right before it, up to then.
    """
    hues: dict[tuple[str, int], int] = {}
    before: dict[int | None, int] = {}
    found, fresh = [], 0
    for visit in visits:
        shard = (visit.split, visit.shard)
        if shard not in hues:
            if before.get(visit.slot) == fresh % count:
                fresh += 1
            hues[shard] = fresh % count
            fresh += 1
        before[visit.slot] = hues[shard]
        found.append(hues[shard])
    return found


def ids_text(visit: Visit, order: Order) -> str:
    """Return the ids of a visit: the first and last of a run, else each, or the first few of many.

    >>> from shardctl.planning.order import plan_order
    >>> from shardctl.planning.pictures.strips import strips
    >>> order = plan_order("imagenet2012", "train", {"cycle": 2, "block": 16}).order
    >>> [ids_text(visit, order) for visit in strips(order, 0, 33).visits]
    ['0–15', '1251–1266', '16']
    """
    if visit.count == 1:
        return str(visit.first_id)
    if visit.is_run:
        return f"{visit.first_id}–{visit.last_id}"
    shown = visit.count if visit.count <= _IDS else _IDS - 2
    codes = order.codes_at(np.arange(visit.position, visit.position + shown))
    ids = list(map(str, order.codes.split_ids(codes).tolist()))
    if shown < visit.count:
        ids += ["…", str(visit.last_id)]
    return ", ".join(ids)


def epoch_starts(visits: Sequence[Visit]) -> list[tuple[int, int]]:
    """Return (position, epoch) where an epoch begins, with the first one if there are several."""
    starts = [
        (visit.position, visit.epoch)
        for before, visit in pairwise(visits)
        if visit.epoch != before.epoch
    ]
    return [(visits[0].position, visits[0].epoch), *starts] if starts else []


def step_starts(order: Order, start: int, stop: int, most: int) -> list[tuple[int, int]] | None:
    """Return (position, step) where batches begin in [start, stop), None where these are too many.

    A batch that began before `start` is not among them; without batches there are none.
    """
    if not order.has_steps or start >= stop:
        return []
    first, last = order.steps_of([start, stop - 1])[0].tolist()
    if last - first >= most:
        return None
    begun = ((order.positions_in_step(step).start, step) for step in range(first, last + 1))
    return [(position, step) for position, step in begun if position >= start]
