"""Streams of examples compared with each other: position by position, and by number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.runs import Runs
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

_FEW = 1 << 8  # runs that are looked at together where two streams have other ones
MAX_COUNTED = 1 << 30  # examples of the splits, which are counted one by one in 4 bytes each


def num_differing(expected: Iterable[Int64s], actual: Iterable[Int64s]) -> int:
    """Return at how many positions two streams differ; what one has beyond the other differs."""
    num_differing = 0
    left = right = np.empty(0, np.int64)
    ones, twos = filter(len, expected), filter(len, actual)  # an empty chunk is not the end
    while True:
        if not len(left):
            left = next(ones, left)
        if not len(right):
            right = next(twos, right)
        # The streams come in chunks of their own sizes; what both have by now is compared.
        common = min(len(left), len(right))
        if not common:
            break
        num_differing += int(np.count_nonzero(left[:common] != right[:common]))
        left, right = left[common:], right[common:]
    return num_differing + sum(map(len, (left, right, *ones, *twos)))


def num_differing_in_runs(expected: Iterable[Runs], actual: Iterable[Runs]) -> int:
    """Return at how many positions two streams differ, each told as runs, however they are cut.

    What one has beyond the other differs. Of runs that are alike no position is looked at.
    """
    num_differing, few = 0, _FEW
    left = right = (np.empty(0, np.int64), np.empty(0, np.int64))
    ones, twos = ((runs for runs in side if len(runs[0])) for side in (expected, actual))
    while True:
        if not len(left[0]):
            left = next(ones, left)
        if not len(right[0]):
            right = next(twos, right)
        common = min(len(left[0]), len(right[0]))
        if not common:
            break
        others = left[0][:common] != right[0][:common]
        others |= left[1][:common] != right[1][:common]
        alike = int(others.argmax()) if others.any() else common
        left, right = _behind(left, alike), _behind(right, alike)
        if alike == common:
            few = _FEW
            continue
        # Mostly one is cut where the other is not; where all differ, more and more are looked at.
        differing, left, right = _looked_at(left, right, few)
        num_differing += differing
        few *= 2
    rest = (left, right, *ones, *twos)
    return num_differing + sum(int(lengths.sum()) for _, lengths in rest)


def _behind(runs: Runs, count: int) -> Runs:
    return runs[0][count:], runs[1][count:]


def _looked_at(left: Runs, right: Runs, count: int) -> tuple[int, Runs, Runs]:
    """Return how many positions differ within `count` runs of each, and the runs behind them."""
    ends = [np.cumsum(lengths[:count]) for _, lengths in (left, right)]
    stop = min(int(ends[0][-1]), int(ends[1][-1]))
    # Between two cuts of either both count on, so that all positions there differ or none.
    bounds = np.unique(np.concatenate(ends))
    bounds = bounds[bounds <= stop]
    starts = np.concatenate(([0], bounds[:-1]))
    codes = [_codes_at(runs, end, starts) for runs, end in zip((left, right), ends, strict=True)]
    differing = int((bounds - starts)[codes[0] != codes[1]].sum())
    return differing, _cut_at(left, ends[0], stop), _cut_at(right, ends[1], stop)


def _codes_at(runs: Runs, ends: Int64s, positions: Int64s) -> Int64s:
    """Return the codes at positions that ascend, counted from where the runs begin."""
    rows = np.searchsorted(ends, positions, side="right")
    codes: Int64s = runs[0][rows] + positions - ends[rows] + runs[1][rows]
    return codes


def _cut_at(runs: Runs, ends: Int64s, stop: int) -> Runs:
    """Return the runs behind the first `stop` codes."""
    row = int(np.searchsorted(ends, stop, side="right"))
    firsts, lengths = _behind(runs, row)
    begun = stop - int(ends[row - 1]) if row else stop
    if begun and row < len(ends):
        firsts, lengths = firsts.copy(), lengths.copy()
        firsts[0] += begun
        lengths[0] -= begun
    return firsts, lengths


class Counts:
    """How often each example is still to come: below 0 where it came too often."""

    def __init__(self, codes: ExampleCodes) -> None:
        splits = codes.dataset.splits
        ends = [int(base) + s.num_examples for base, s in zip(codes.bases, splits, strict=True)]
        if max(ends) > MAX_COUNTED:
            raise UsageError(
                phrase(
                    "{prove} counts every example of the splits; {:,} are more than {:,}",
                    max(ends),
                    MAX_COUNTED,
                )
            )
        self._counts = np.zeros(max(ends), np.int32)

    def add(self, chunks: Iterable[Int64s]) -> None:
        """Expect these, codes as int64 arrays."""
        for chunk in chunks:
            np.add.at(self._counts, chunk, 1)  # `+= 1` would count a repeated code once

    def remove(self, chunks: Iterable[Int64s]) -> None:
        """Take note that these came."""
        for chunk in chunks:
            np.subtract.at(self._counts, chunk, 1)

    def take_once(self) -> None:
        """Count what comes several times as coming once."""
        np.minimum(self._counts, 1, out=self._counts)

    def drop(self, codes: Int64s) -> None:
        """Expect these no more, however often they are named; codes of no example are passed by."""
        self._counts[codes[(codes >= 0) & (codes < len(self._counts))]] = 0

    def left(self) -> int:
        """Return how many are still to come."""
        return int(self._counts[self._counts > 0].sum())

    def excess(self) -> int:
        """Return how many came that were not expected."""
        return -int(self._counts[self._counts < 0].sum())
