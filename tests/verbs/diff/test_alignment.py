"""Lists are aligned with the most likeness: beside all ways there are."""

from __future__ import annotations

import random
from itertools import combinations

from shardctl.stages.part import Stage
from shardctl.stages.stages import Batch, Cache, Shuffle
from shardctl.verbs.diff.causes import aligned, likeness, with_moved


def alike(one: str, other: str) -> float:
    return 3.0 - abs(ord(one) - ord(other))


def most_alike(old: str, new: str) -> float:
    """Return the most likeness over all ways to pair some items of both in their order."""
    return max(
        sum(alike(old[i], new[j]) for i, j in zip(left, right, strict=True))
        for count in range(min(len(old), len(new)) + 1)
        for left in combinations(range(len(old)), count)
        for right in combinations(range(len(new)), count)
    )


def test_no_way_is_more_alike() -> None:
    drawn = random.Random(3)
    for _ in range(200):
        old, new = ("".join(drawn.choices("abcdefgh", k=drawn.randint(0, 5))) for _ in range(2))
        total, pairs = aligned(old, new, alike)
        found = [alike(old[i], new[j]) for i, j in pairs if i is not None and j is not None]
        assert total == sum(found) == most_alike(old, new)
        assert all(one > 0 for one in found)
        assert [i for i, _ in pairs if i is not None] == list(range(len(old)))
        assert [j for _, j in pairs if j is not None] == list(range(len(new)))


def test_what_left_here_and_came_there_has_moved() -> None:
    shuffle = Shuffle(buffer=5, seed=1)
    old: tuple[Stage, ...] = (Cache(), shuffle, Batch(size=2))
    new: tuple[Stage, ...] = (shuffle, Cache(), Batch(size=2))
    pairs = aligned(old, new, likeness)[1]
    assert list(with_moved(pairs, old, new)) == [(0, 1, True), (1, 0, False), (2, 2, False)]
