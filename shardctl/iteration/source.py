"""Sources: elements in a fixed order, each an example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.iteration.iteration import Leaf, Node


class Source(Node):
    """`Dataset.range` or `Dataset.from_tensor_slices`: each iterator hands out the same codes.

    >>> iteration = Source(range(5)).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([4, 0])).tolist()
    (5, [4, 0])
    """

    def __init__(self, codes: Sequence[int] | Int64s) -> None:
        self.codes = codes if isinstance(codes, range) else np.asarray(codes, np.int64)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        return len(self.codes)

    def iterate(self) -> SourceIteration:
        return SourceIteration(self.codes)


NOTHING = Source(range(0))  # what an iterator reads that makes none below it


class SourceIteration(Leaf):
    """An iterator over codes; those of a range take no memory."""

    def __init__(self, codes: range | Int64s) -> None:
        super().__init__(len(codes))
        self._all = codes

    def _codes(self, elements: Int64s) -> Int64s:
        if isinstance(self._all, range):
            return np.asarray(elements, np.int64) * self._all.step + self._all.start
        return self._all[elements]

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        wanted = np.asarray(codes, np.int64)
        if isinstance(self._all, range):
            elements, rest = np.divmod(wanted - self._all.start, self._all.step)
            found = np.flatnonzero((rest == 0) & (elements >= 0) & (elements < self.pulled))
            return found, elements[found]
        pulled = self._all[: self.pulled]
        order = np.argsort(pulled, kind="stable")
        first = np.searchsorted(pulled, wanted, "left", sorter=order)
        counts = np.searchsorted(pulled, wanted, "right", sorter=order) - first
        query = np.repeat(np.arange(len(wanted)), counts)
        within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        return query, order[np.repeat(first, counts) + within]
