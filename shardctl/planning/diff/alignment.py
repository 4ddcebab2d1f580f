"""Which stage of one list is which of another: an alignment at the least cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TypeVar

from shardctl.core.stages.stages import (
    Batch,
    Cache,
    Map,
    Opaque,
    Pipeline,
    Prefetch,
    Read,
    Repeat,
    Shuffle,
    Source,
    Stage,
    WithOptions,
)

Item = TypeVar("Item")
Pair = tuple[int | None, int | None]


def aligned(
    old: Sequence[Item],
    new: Sequence[Item],
    cost: Callable[[Item, Item], float],
    gap: Callable[[Item], float],
) -> list[Pair]:
    """Return which item of one list is which of the other, at the least cost, in order.

    An item that has no counterpart costs its gap.

    >>> unlike = lambda one, other: 0.0 if one == other else 9.0
    >>> aligned("abc", "bcd", unlike, lambda item: 1.0)
    [(0, None), (1, 0), (2, 1), (None, 2)]
    """
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) + 1):
        for j in range(len(new) + 1):
            ways = []
            if i and j:
                ways.append(best[i - 1][j - 1] + cost(old[i - 1], new[j - 1]))
            if i:
                ways.append(best[i - 1][j] + gap(old[i - 1]))
            if j:
                ways.append(best[i][j - 1] + gap(new[j - 1]))
            best[i][j] = min(ways, default=0.0)
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i or j:
        if i and j and best[i][j] == best[i - 1][j - 1] + cost(old[i - 1], new[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif j and best[i][j] == best[i][j - 1] + gap(new[j - 1]):
            j -= 1
            pairs.append((None, j))
        else:
            i -= 1
            pairs.append((i, None))
    return pairs[::-1]


def with_moved(
    pairs: Sequence[Pair], old: Sequence[Stage], new: Sequence[Stage]
) -> list[tuple[int | None, int | None, bool]]:
    """Return the pairs, those of one kind that left here and came there joined as moved."""
    left = [before for before, after in pairs if after is None and before is not None]
    came = [after for before, after in pairs if before is None and after is not None]
    alike = sorted(
        (cost_of(old[before], new[after]), before, after)
        for before in left
        for after in came
        if called(old[before]) == called(new[after])
    )
    moved: dict[int, int] = {}
    for _, before, after in alike:
        if before not in moved and after not in moved.values():
            moved[before] = after
    found: list[tuple[int | None, int | None, bool]] = []
    for was, now in pairs:
        if was is not None and was in moved:
            found.append((was, moved[was], True))
        elif now is None or was is not None or now not in moved.values():
            found.append((was, now, False))
    return found


# What orders depend on most keeps its place, and the rest has moved around it.
_WEIGHTS: tuple[tuple[type[Stage], float], ...] = (
    (Shuffle, 3.0),
    (Repeat, 2.5),
    (Batch, 2.0),
    (Cache, 1.2),
    (Map, 1.0),
    (WithOptions, 0.9),
    (Prefetch, 0.8),
)


def gap_of(stage: Stage) -> float:
    """Return what it costs that a stage has no counterpart."""
    return next((weight for kind, weight in _WEIGHTS if isinstance(stage, kind)), 1.5)


def cost_of(old: Stage, new: Stage) -> float:
    """Return how unlike two stages are: 0 for equal ones, more than their gaps for two kinds."""
    if old == new:
        return 0.0
    if called(old) != called(new):
        return gap_of(old) + gap_of(new) + 1.0
    names = [field.name for field in fields(old)]
    differ = [name for name in names if getattr(old, name) != getattr(new, name)]
    return 0.2 + 0.3 * len(differ) / max(len(names), 1)


def gap_of_input(pipeline: Pipeline) -> float:
    """Return what it costs that an input has no counterpart."""
    return 2.0 + sum(map(gap_of, pipeline.stages))


def cost_of_inputs(old: Pipeline, new: Pipeline) -> float:
    """Return how unlike two inputs are, up to two whole gaps."""
    cost = 0.0
    if old.source != new.source:
        cost = 1.0 if type(old.source) is type(new.source) else 3.0
        if isinstance(old.source, Read) and isinstance(new.source, Read):
            cost = 1.5 if (old.source.spec, old.source.data) != _what(new.source) else 0.5
    for before, after in aligned(old.stages, new.stages, cost_of, gap_of):
        if before is not None and after is not None:
            cost += cost_of(old.stages[before], new.stages[after])
        else:
            cost += gap_of(old.stages[before] if before is not None else new.stages[after or 0])
    return cost


def _what(read: Read) -> tuple[str | None, str | None]:
    return read.spec, read.data


def called(part: Stage | Source) -> str:
    """Return the name of the call that a stage or a source is.

    >>> called(Opaque(call="flat_map")), called(Cache())
    ('flat_map', 'cache')
    """
    return part.call if isinstance(part, Opaque) else part.name
