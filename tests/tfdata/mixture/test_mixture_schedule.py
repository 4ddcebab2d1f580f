"""MixtureSchedule: any place of a mixture against the whole of it, over many checkpoints."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.tfdata.mixture import BLOCK, MixtureSchedule
from tests.cases import add_cases


def _played(
    choices: Int64s, lengths: list[int], steps: random.Random
) -> tuple[MixtureSchedule, Int64s]:
    """Return turns over all choices in random steps, and (input, place) of each element."""
    turns = MixtureSchedule(lambda start, stop: choices[start:stop], len(lengths))
    pulled, elements = [0] * len(lengths), []
    ended = [False] * len(lengths)
    at = 0
    while at < len(choices):
        part = turns.next_choices(steps.choice([1, 70, BLOCK]))
        counts, used = np.zeros(len(lengths), np.int64), 0
        for number in part.tolist():
            if not ended[number] and pulled[number] == lengths[number]:
                break
            if not ended[number]:
                elements.append((number, pulled[number]))
                pulled[number] += 1
                counts[number] += 1
            used += 1
        turns.record(used, counts)
        at += used
        if used < len(part):
            turns.end(int(part[used]))
            ended[int(part[used])] = True
            turns.record(1, np.zeros(len(lengths), np.int64))
            at += 1
    return turns, np.array(elements)


@pytest.mark.long
def test_every_place_is_that_of_the_whole() -> None:
    rng = random.Random(0)
    for lengths in ([10**9] * 3, [50_000, 10**9, 3, 0], [100_000, 90_000]):
        choices = np.random.default_rng(0).integers(0, len(lengths), 4 * BLOCK + 77)
        turns, expected = _played(choices, lengths, rng)
        assert turns.num_elements == len(expected)
        assert turns.num_choices == len(choices)
        elements = np.random.default_rng(1).integers(0, len(expected), 500)
        numbers, places = turns.of(elements)
        assert np.stack((numbers, places), 1).tolist() == expected[elements].tolist()
        for number in range(len(lengths)):
            mine = np.flatnonzero(expected[:, 0] == number)
            some = np.arange(0, len(mine), 1 + len(mine) // 50)
            assert turns.elements(number, some).tolist() == mine[some].tolist()
        add_cases(len(elements))


def test_nothing_made_yet_has_nothing() -> None:
    turns = MixtureSchedule(lambda start, stop: np.zeros(stop - start, np.int64), 2)
    assert turns.num_elements == 0


def test_few_choices_are_made_where_few_are_taken() -> None:
    asked: list[int] = []

    def between(start: int, stop: int) -> Int64s:
        asked.append(stop - start)
        return np.zeros(stop - start, np.int64)

    turns = MixtureSchedule(between, 1)
    for _ in range(200):
        assert len(turns.next_choices(10)) == 10
        turns.record(10, np.array([10]))
    assert sum(asked) < 8 * 2000
    while turns.num_choices < 3 * BLOCK:
        part = turns.next_choices(1000)
        turns.record(len(part), np.array([len(part)]))
    assert sum(asked) < 4 * BLOCK  # of many no more than a few are made twice
