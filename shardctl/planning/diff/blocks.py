"""Two orders side by side, rebuilt block by block where their digests differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.progress import Progress
from shardctl.core.snapshot.order_tree import digests_of
from shardctl.planning.diff.pinned_order import PinnedOrder

Id = int | str
MAX_SCANNED = 1 << 32  # positions of a block that are compared one by one, in some minutes
_PIECE = 1 << 20  # positions that are compared at once; a multiple of a cell


class Scan(NamedTuple):
    """What a block shows: where it differs first, and at how many positions."""

    first: int
    num_positions: int


@dataclass(kw_only=True, eq=False)
class TwoOrders:
    """Two orders, compared in blocks of `size` of their `positions`, the longer one's number.

    After a scan `not_reproduced` are the sides that cannot be rebuilt as they were pinned, and
    `too_long` says that a block has more positions than are compared.
    """

    expected: PinnedOrder
    actual: PinnedOrder
    size: int
    positions: int
    not_reproduced: list[PinnedOrder] = field(default_factory=list)
    too_long: bool = False

    def span(self, block: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a block."""
        return block * self.size, min((block + 1) * self.size, self.positions)

    def scan(self, block: int) -> Scan | None:
        """Return where a block that differs does so, None where it is too long or not rebuilt.

        Each side is built once; what is built of a pinned one must have the digest that is pinned.
        """
        sides = (self.expected, self.actual)
        self.not_reproduced = [side for side in sides if side.rebuilt is None]
        start, stop = self.span(block)
        self.too_long = stop - start > MAX_SCANNED
        if self.not_reproduced or self.too_long:
            return None
        progress = Progress(None, "positions", stop - start)
        cells: tuple[list[bytes], list[bytes]] = ([], [])
        first, count = stop, 0
        for begin in range(start, stop, _PIECE):
            end = min(begin + _PIECE, stop)
            codes = [_codes(side, begin, end) for side in sides]
            for side, found, digests in zip(sides, codes, cells, strict=True):
                if side.live is None and side.rebuilt is not None:
                    version = side.snapshot.tree.version
                    digests.extend(digests_of([found], side.rebuilt.splits, version=version))
            differs = np.flatnonzero(self._differ(codes[0], codes[1], end - begin))
            if differs.size:
                first = min(first, begin + int(differs[0]))
                count += differs.size
            progress.advance(end - begin)
        self.not_reproduced = [
            side
            for side, digests in zip(sides, cells, strict=True)
            if not side.holds(digests, size=self.size, block=block)
        ]
        return None if self.not_reproduced else Scan(first, count)

    def ids(self, side: PinnedOrder, start: int, stop: int) -> list[Id | None]:
        """Return ids as ints, or as `split:id` where the two read several splits between them.

        None stands for a position past the end, or one of a side that is not reproduced.
        """
        shown: list[Id | None] = []
        if not any(side is other for other in self.not_reproduced):
            ranks, ids = self._ranked(side, _codes(side, start, stop))
            names = list(self._ranks)
            shown += [
                f"{names[rank]}:{i}" if len(names) > 1 else i
                for rank, i in zip(ranks.tolist(), ids.tolist(), strict=True)
            ]
        return shown + [None] * (stop - start - len(shown))

    def first_ids(self) -> Iterator[tuple[int, Id, Id]]:
        """Yield (position, expected, actual) of the ids that both pin for people, if comparable."""
        sides = self.expected.snapshot, self.actual.snapshot
        if len({tuple(split.name for split in side.splits) for side in sides}) == 1:
            pairs = zip(sides[0].first_ids, sides[1].first_ids, strict=False)
            yield from ((position, old, new) for position, (old, new) in enumerate(pairs))

    def _differ(self, old: Int64s, new: Int64s, count: int) -> NDArray[np.bool_]:
        """Return where two runs of codes name other examples, bool[count]; past an end they do."""
        differs = np.ones(count, bool)
        common = min(len(old), len(new))
        one = self._ranked(self.expected, old[:common])
        other = self._ranked(self.actual, new[:common])
        differs[:common] = (one[0] != other[0]) | (one[1] != other[1])
        return differs

    def _ranked(self, side: PinnedOrder, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (split, id), int64[n] each, with a number for each split that both agree on."""
        assert side.rebuilt is not None
        splits = side.rebuilt.splits
        split, ids = splits.split_ids(codes)
        return np.array([self._ranks[name] for name in splits.names], np.int64)[split], ids

    @cached_property
    def _ranks(self) -> dict[str, int]:
        names = [s.name for side in (self.expected, self.actual) for s in side.snapshot.splits]
        return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _codes(side: PinnedOrder, start: int, stop: int) -> Int64s:
    """Return the codes at [start, stop) as far as the order goes."""
    assert side.rebuilt is not None
    stop = min(stop, side.rebuilt.order.num_examples)
    return side.rebuilt.order.read(min(start, stop), stop)
