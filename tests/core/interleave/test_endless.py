"""Shards that are listed again and again: windows read like a list that is long enough."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.arrays import Int64s
from shardctl.core.interleave import endless as module
from shardctl.core.interleave.endless import EndlessInterleave
from shardctl.core.interleave.interleave import Interleave
from shardctl.errors import UsageError
from tests.core.interleave.endless_cases import EndlessCase

NUM_CASES = 40


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_every_window_reads_like_one_long_list(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = set()
    for seed in range(part * NUM_CASES, (part + 1) * NUM_CASES):
        case = EndlessCase.of(seed)
        monkeypatch.setattr(module, "_OPENED", case.opened)
        check_windows(case)
        kinds.add(case.is_even)
    assert kinds == {False, True}


def check_windows(case: EndlessCase) -> None:
    """Compare positions of windows, one after the other and in any order, with those of a list."""
    rows, listed = case.listed(60)
    end = int(case.lengths.sum()) * (1 + case.seed % 20)
    shards, offsets = listed.locate(np.arange(end))
    expected = np.stack([rows[shards], offsets], axis=1).tolist()
    endless = case.endless(end)
    found = []
    for window in endless.windows(0, end):
        found += located(window, np.arange(window.start, min(window.stop, end)))
    assert found == expected, case
    far_first = case.endless()
    places = np.random.default_rng(case.seed).integers(0, end, 6)
    for start in places.tolist():
        stop = min(end, start + 40)
        window = far_first.listed(start, stop)
        assert located(window, np.arange(start, stop)) == expected[start:stop], (case, start)
        found = located(far_first.window(start), np.array([start]))
        assert found == expected[start : start + 1], (case, start)
        # As many files are open, and have been opened, as in the whole list.
        here, there = window.interleave.state(start - window.start), listed.state(start)
        late = np.count_nonzero(window.skips[: here.next_shard])
        assert window.num_opened + here.next_shard - late == there.next_shard, (case, start)
        assert [shard is None for shard, _ in here.slots] == [
            shard is None for shard, _ in there.slots
        ], (case, start)


def located(window: module.Window, positions: Int64s) -> list[list[int]]:
    """Return [shard, offset] at positions of a window."""
    entries, offsets = window.interleave.locate(positions - window.start)
    skips = np.zeros(len(window.rows), np.int64)
    skips[: len(window.skips)] = window.skips
    pairs: list[list[int]] = np.stack(
        [window.rows[entries], offsets + skips[entries]], axis=1
    ).tolist()
    return pairs


def test_a_far_position_of_shards_that_are_alike_costs_a_window() -> None:
    made: list[range] = []

    def openings(repetitions: range) -> Int64s:
        made.append(repetitions)
        return np.tile([1, 0], len(repetitions))

    endless = EndlessInterleave(np.array([5, 4]), openings, cycle_length=2, block_length=3)
    start = 9 * 10**15
    window = endless.window(start + 4)
    assert located(window, np.arange(start, start + 9)) == [
        [1, 0], [1, 1], [1, 2], [0, 0], [0, 1], [0, 2], [1, 3], [0, 3], [0, 4],
    ]  # fmt: skip
    assert sum(map(len, made)) < 100_000


def test_long_files_are_no_work() -> None:
    long = EndlessInterleave(
        np.array([5_000_000, 1]),
        lambda repetitions: np.tile([0, 1], len(repetitions)),
        cycle_length=2,
        block_length=2,
    )
    window = long.window(10**7)  # two repetitions behind the start
    assert window.start <= 10**7 < window.stop


def test_work_of_more_than_a_day_and_lists_beyond_memory_are_refused() -> None:
    uneven = EndlessInterleave(
        np.array([5, 1]),
        lambda repetitions: np.tile([0, 1], len(repetitions)),
        cycle_length=2,
        block_length=2,
    )
    with pytest.raises(UsageError, match="more than a day is refused; ask for fewer --epochs"):
        uneven.window(10**13)
    even = EndlessInterleave(
        np.array([1]), lambda repetitions: np.zeros(len(repetitions), np.int64),
        cycle_length=1, block_length=1,
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"more than 16777216; ask for fewer --epochs"):
        even.listed(0, 10**8)
    assert isinstance(even.window(10**15).interleave, Interleave)


def test_4_million_files_may_be_open_at_once_and_not_one_more() -> None:
    def opened(cycle: int) -> EndlessInterleave:
        return EndlessInterleave(
            np.array([1, 2]),
            lambda repetitions: np.tile([0, 1], len(repetitions)),
            cycle_length=cycle,
            block_length=1,
        )

    opened(1 << 22)
    with pytest.raises(UsageError, match=r"^--cycle 4194305: more than 4194304 open files$"):
        opened((1 << 22) + 1)
