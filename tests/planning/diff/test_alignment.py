"""Lists are aligned at the least cost: beside all ways there are."""

from __future__ import annotations

import random
from itertools import combinations

from shardctl.core.stages.part import Stage
from shardctl.core.stages.stages import Batch, Cache, Shuffle
from shardctl.planning.diff.stages import aligned, cost_of, gap_of, with_moved


def unlike(one: str, other: str) -> float:
    return abs(ord(one) - ord(other)) / 10


def least_cost(old: str, new: str, gap: float) -> float:
    """Return the least cost over all ways to pair some items of both in their order."""
    return min(
        sum(unlike(old[i], new[j]) for i, j in zip(left, right, strict=True))
        + gap * (len(old) + len(new) - 2 * count)
        for count in range(min(len(old), len(new)) + 1)
        for left in combinations(range(len(old)), count)
        for right in combinations(range(len(new)), count)
    )


def test_no_way_costs_less() -> None:
    drawn = random.Random(3)
    for _ in range(200):
        old, new = ("".join(drawn.choices("abcdefgh", k=drawn.randint(0, 5))) for _ in range(2))
        gap = drawn.choice((0.05, 0.1, 0.3))
        pairs = aligned(old, new, unlike, lambda item, gap=gap: gap)  # type: ignore[misc]
        cost = sum(gap if i is None or j is None else unlike(old[i], new[j]) for i, j in pairs)
        assert abs(cost - least_cost(old, new, gap)) < 1e-9
        assert [i for i, _ in pairs if i is not None] == list(range(len(old)))
        assert [j for _, j in pairs if j is not None] == list(range(len(new)))


def test_what_left_here_and_came_there_has_moved() -> None:
    shuffle = Shuffle(buffer=5, seed=1)
    old: tuple[Stage, ...] = (Cache(), shuffle, Batch(size=2))
    new: tuple[Stage, ...] = (shuffle, Cache(), Batch(size=2))
    pairs = aligned(old, new, cost_of, gap_of)
    assert with_moved(pairs, old, new) == [(0, 1, True), (1, 0, False), (2, 2, False)]
