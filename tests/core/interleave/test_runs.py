"""Runs: the same for the same numbers, however those came."""

from __future__ import annotations

import random

import numpy as np

from shardctl.core.arrays import joined_runs, runs_in
from tests.cases import add_cases


def test_runs_are_as_long_as_can_be_however_numbers_are_cut() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        numbers: list[int] = []
        for _ in range(draw.randrange(12)):
            first = draw.choice([0, 1, 5, *[number + 1 for number in numbers[-1:]]])
            numbers += range(first, first + draw.randrange(5))
        expected: list[list[int]] = []
        for number in numbers:
            if expected and sum(expected[-1]) == number:
                expected[-1][1] += 1
            else:
                expected.append([number, 1])
        cuts = sorted(draw.choices(range(len(numbers) + 1), k=draw.randrange(6)))
        pieces = np.split(np.array(numbers, np.int64), cuts)
        found = list(joined_runs(map(runs_in, pieces)))
        assert all(len(firsts) for firsts, _ in found), (seed, numbers, cuts)
        rows = [[f, n] for piece in found for f, n in zip(*map(list, piece), strict=True)]
        assert rows == expected, (seed, numbers, cuts)
        whole = [[f, n] for f, n in zip(*runs_in(np.array(numbers, np.int64)), strict=True)]
        assert whole == expected, (seed, numbers)
        add_cases()
