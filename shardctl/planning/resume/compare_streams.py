"""Streams of examples compared with each other: position by position, and by number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

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
