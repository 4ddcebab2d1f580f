"""Which examples specs select: sets of ids as sorted stretches, split by split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.split_range import SplitRange

Stretch = tuple[int, int]  # [start, stop)
IdSets = dict[str, list[Stretch]]


def id_sets(ranges: Iterable[SplitRange]) -> IdSets:
    """Return the ids that ranges select, as disjoint ascending stretches of each split.

    >>> from shardctl.core.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(10,))
    >>> late, early = (SplitRange(split=split, start=a, stop=b) for a, b in [(4, 8), (0, 5)])
    >>> id_sets([late, early])
    {'train': [(0, 8)]}
    """
    by_split: dict[str, list[Stretch]] = {}
    for piece in ranges:
        if piece.num_examples:
            by_split.setdefault(piece.split.name, []).append((piece.start, piece.stop))
    return {name: _joined(stretches) for name, stretches in by_split.items()}


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for start, stop in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def in_both(left: IdSets, right: IdSets) -> IdSets:
    """Return the ids in both, splits without any left out.

    >>> in_both({"train": [(0, 6)]}, {"train": [(4, 9)], "test": [(0, 1)]})
    {'train': [(4, 6)]}
    """
    both = {
        name: _shared(stretches, right[name]) for name, stretches in left.items() if name in right
    }
    return {name: stretches for name, stretches in both.items() if stretches}


def _shared(left: Sequence[Stretch], right: Sequence[Stretch]) -> list[Stretch]:
    shared: list[Stretch] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, stop = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < stop:
            shared.append((start, stop))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return shared


def without(left: IdSets, right: IdSets) -> IdSets:
    """Return the ids in `left` that are not in `right`, splits without any left out.

    >>> without({"train": [(0, 9)]}, {"train": [(4, 6)], "test": [(0, 1)]})
    {'train': [(0, 4), (6, 9)]}
    """
    rest = {name: _cut(stretches, right.get(name, [])) for name, stretches in left.items()}
    return {name: stretches for name, stretches in rest.items() if stretches}


def _cut(stretches: Sequence[Stretch], holes: Sequence[Stretch]) -> list[Stretch]:
    pieces = []
    for start, stop in stretches:
        begin = start
        for hole_start, hole_stop in holes:
            if hole_stop <= begin or stop <= hole_start:
                continue
            if begin < hole_start:
                pieces.append((begin, hole_start))
            begin = hole_stop
        if begin < stop:
            pieces.append((begin, stop))
    return pieces


def as_spec(sets: IdSets, dataset: Dataset) -> str:
    """Return a spec that selects the ids.

    >>> from shardctl.core.dataset.dataset import Split
    >>> toy = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9,)),))
    >>> as_spec({"train": [(0, 4), (6, 9)]}, toy)
    'train[:4]+train[6:]'
    """
    parts = []
    for name, stretches in sets.items():
        total = dataset.split(name).num_examples
        for start, stop in stretches:
            bounds = f"[{start or ''}:{'' if stop == total else stop}]"
            parts.append(name if bounds == "[:]" else f"{name}{bounds}")
    return "+".join(parts)


def num_ids(sets: IdSets) -> int:
    """Return how many ids there are.

    >>> num_ids({"train": [(0, 6), (7, 8)]})
    7
    """
    return sum(stop - start for stretches in sets.values() for start, stop in stretches)
