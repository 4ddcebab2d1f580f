"""The readings of many epochs at once: where a few examples are in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.together import opened_together, positions_together
from shardctl.core.shuffle.permutations import ROOM, Seeds, permutations

# Beyond these a reading of its own is as quick, which answers for any number of examples.
_MOST_FILES = 1 << 13
_MOST_SLOTS = 1 << 8
_MOST_LOOKED_AT = 1 << 16  # files, once for each example


@dataclass(frozen=True, kw_only=True)
class ReadingsTogether:
    """Where each epoch reads a few examples, whose files it shuffles anew.

    `take` (int64[n]) is what each file yields, `seeds` what epochs that follow each other shuffle
    the files with. The examples are at `offsets` in what `rows` read (int64[q] each); a host has
    those at `phase` and every `stride` after it.

    >>> together = ReadingsTogether(
    ...     take=np.array([1, 3]), rows=np.array([1]), offsets=np.array([0]), cycle_length=1,
    ...     seeds=lambda epochs: np.array([[87654321, epoch] for epoch in epochs], np.uint64))
    >>> [column.tolist() for column in together.positions(range(4))]
    [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 0, 0]]
    """

    take: Int64s
    seeds: Callable[[range], Seeds]
    rows: Int64s
    offsets: Int64s
    cycle_length: int = 16
    block_length: int = 16
    stride: int = 1
    phase: int = 0

    @property
    def pays(self) -> bool:
        """Whether that is quicker than a reading an epoch."""
        count = len(self.take)
        return (
            count <= _MOST_FILES
            and count * len(self.rows) <= _MOST_LOOKED_AT
            and min(self.cycle_length, count) <= _MOST_SLOTS
            and int(self.take.max()) * count < 1 << 62
        )

    @property
    def at_once(self) -> int:
        """How many epochs to look at together at most, for their memory."""
        return max(1, ROOM // len(self.take))

    def positions(self, epochs: range) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which query, which of the epochs, position in it) where this host has it."""
        order = permutations(len(self.take), self.seeds(epochs))
        sizes = {
            "cycle_length": min(self.cycle_length, len(self.take)),
            "block_length": min(self.block_length, int(self.take.max()) + 1),
        }
        lengths = self.take[order]
        keys = opened_together(lengths, **sizes)
        found = np.empty((len(self.rows), len(epochs)), np.int64)
        for row, offset, into in zip(self.rows.tolist(), self.offsets.tolist(), found, strict=True):
            places = (order == row).argmax(axis=0)
            into[:] = positions_together(lengths, keys, places, offset, **sizes)
        query, epoch = np.nonzero(found % self.stride == self.phase)
        return query, epoch, found[query, epoch] // self.stride
