"""Where do two orders part, how much of them moved, and why?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.core.hash_tree import differing_blocks
from shardctl.core.read_table import Int64s
from shardctl.planning.diff_causes import Cause, causes
from shardctl.planning.pinned_order import PinnedOrder

EXACT_LIMIT = 5_000_000  # positions in parted blocks up to which every one is compared
NUM_NEIGHBOURS = 3
_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FirstDifference:
    """Where two orders part: at `position`, or somewhere in [position, stop) where that is open.

    `expected` and `actual` are ids, None where the order has ended or is not known there.
    """

    position: int
    stop: int
    expected: int | str | None
    actual: int | str | None

    @property
    def exact(self) -> bool:
        """Whether the position is known."""
        return self.stop == self.position + 1


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The ids of both orders from `start` on, None where one has ended."""

    start: int
    expected: tuple[int | str | None, ...]
    actual: tuple[int | str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How many of `positions` have another example: a number between the two, both included."""

    at_least: int
    at_most: int
    positions: int


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The answer: `changes` is everything pinned that differs, also where the orders are equal."""

    expected: PinnedOrder
    actual: PinnedOrder
    first: FirstDifference | None
    neighbours: Stretch | None
    moved: Moved
    changes: tuple[Cause, ...]
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the same examples stand at the same positions."""
        return self.first is None

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What changed, where that parts the orders."""
        if self.equal:
            return ()
        return self.changes or (Cause(kind="unknown", name="shardctl"),)


def diff(expected: PinnedOrder, actual: PinnedOrder, *, exact_limit: int = EXACT_LIMIT) -> Diff:
    """Return where and why two orders part, rebuilding no more than the blocks that differ.

    Every position is compared where at most `exact_limit` lie in such blocks; else only the first
    such block is rebuilt, and how much moved is known to a block.
    """
    trees = expected.snapshot.tree, actual.snapshot.tree
    changes = causes(expected.snapshot, actual.snapshot)
    positions = max(tree.num_examples for tree in trees)
    size, blocks = differing_blocks(*trees)
    if not blocks:
        nothing = Moved(at_least=0, at_most=0, positions=positions)
        return Diff(
            expected=expected,
            actual=actual,
            first=None,
            neighbours=None,
            moved=nothing,
            changes=changes,
        )
    comparison = _Comparison(expected=expected, actual=actual, size=size, positions=positions)
    first = comparison.first(blocks[0])
    return Diff(
        expected=expected,
        actual=actual,
        first=first,
        neighbours=comparison.neighbours(first),
        moved=comparison.moved(blocks, exact_limit),
        changes=changes,
        notes=tuple(comparison.notes()),
    )


@dataclass(kw_only=True)
class _Comparison:
    """Two orders, compared block by block; `strange` are the sides that cannot be made again."""

    expected: PinnedOrder
    actual: PinnedOrder
    size: int
    positions: int
    strange: list[PinnedOrder] = field(default_factory=list)

    def first(self, block: int) -> FirstDifference:
        """Return the first difference in a block that differs."""
        start = block * self.size
        stop = min(start + self.size, self.positions)
        sides = (self.expected, self.actual)
        self.strange = [side for side in sides if not side.holds(self.size, block)]
        if not self.strange:
            pieces = (
                (begin, np.flatnonzero(self._differs(begin, min(begin + _PIECE, stop))))
                for begin in range(start, stop, _PIECE)
            )
            return self._at(next(begin + int(at[0]) for begin, at in pieces if at.size))
        shorter = min(self.expected.snapshot.num_examples, self.actual.snapshot.num_examples)
        for position, ids in enumerate(self._first_ids()):
            if position >= start and ids[0] != ids[1]:
                return FirstDifference(
                    position=position, stop=position + 1, expected=ids[0], actual=ids[1]
                )
        if start == shorter:
            return self._at(start)
        return FirstDifference(position=start, stop=stop, expected=None, actual=None)

    def _first_ids(self) -> Iterator[tuple[int | str, int | str]]:
        sides = self.expected.snapshot, self.actual.snapshot
        if len({tuple(split.name for split in side.splits) for side in sides}) > 1:
            return
        yield from zip(sides[0].first_ids, sides[1].first_ids, strict=False)

    def _at(self, position: int) -> FirstDifference:
        old, new = self._ids(position, position + 1)
        return FirstDifference(position=position, stop=position + 1, expected=old[0], actual=new[0])

    def neighbours(self, first: FirstDifference) -> Stretch | None:
        """Return the ids around the first difference, None where no order is known there."""
        if self.strange:
            return None
        start = max(first.position - NUM_NEIGHBOURS, 0)
        stop = min(first.position + NUM_NEIGHBOURS + 1, self.positions)
        old, new = self._ids(start, stop)
        return Stretch(start=start, expected=tuple(old), actual=tuple(new))

    def moved(self, blocks: Sequence[int], exact_limit: int) -> Moved:
        """Return how many positions differ, counted or estimated from the blocks that do."""
        spans = [(b * self.size, min((b + 1) * self.size, self.positions)) for b in blocks]
        in_blocks = sum(stop - start for start, stop in spans)
        old, new = (side.snapshot.num_examples for side in (self.expected, self.actual))
        exact = (
            not self.strange
            and in_blocks <= exact_limit
            and all(s.holds(self.size, b) for s in (self.expected, self.actual) for b in blocks)
        )
        if exact:
            counted = sum(
                int(np.count_nonzero(self._differs(begin, min(begin + _PIECE, stop))))
                for start, stop in spans
                for begin in range(start, stop, _PIECE)
            )
            return Moved(at_least=counted, at_most=counted, positions=self.positions)
        # In a block before the end of both at least one position differs; past it all do.
        shorter = min(old, new)
        least = sum(max(stop - max(start, shorter), 1) for start, stop in spans)
        return Moved(at_least=least, at_most=in_blocks, positions=self.positions)

    def notes(self) -> Iterator[str]:
        """Yield why a position is not known, where it is not."""
        for side in self.strange:
            if side.rebuilt is None:
                yield (
                    f"{side.label} pins its layout or its file order as hashes, or settings that "
                    "are refused today: its order cannot be made again, only blocks compared"
                )
            else:
                yield (
                    f"what {side.label} pins gives another order today; it was written with rules "
                    f"{side.snapshot.rules}, and only blocks are compared"
                )

    def _differs(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return where the orders differ in [start, stop), bool[stop - start]."""
        differs = np.ones(stop - start, bool)
        old, new = self._read(self.expected, start, stop), self._read(self.actual, start, stop)
        common = min(len(old[1]), len(new[1]))
        differs[:common] = (old[0][:common] != new[0][:common]) | (
            old[1][:common] != new[1][:common]
        )
        return differs

    def _read(self, side: PinnedOrder, start: int, stop: int) -> tuple[Int64s, Int64s]:
        """Return (split, id), int64[n] each, at [start, stop) as far as the order goes."""
        live = side.rebuilt
        assert live is not None
        stop = min(stop, live.order.num_examples)
        codes = live.order.read(min(start, stop), stop)
        split, ids = live.splits.split_ids(codes)
        # The two may read other splits, or in another order.
        ranks = np.array([self._ranks[name] for name in live.splits.names], np.int64)
        return ranks[split], ids

    @cached_property
    def _ranks(self) -> dict[str, int]:
        names = [s.name for side in (self.expected, self.actual) for s in side.snapshot.splits]
        return {name: rank for rank, name in enumerate(dict.fromkeys(names))}

    def _ids(self, start: int, stop: int) -> tuple[list[int | str | None], list[int | str | None]]:
        return self._shown(self.expected, start, stop), self._shown(self.actual, start, stop)

    def _shown(self, side: PinnedOrder, start: int, stop: int) -> list[int | str | None]:
        """Return ids as ints, or as `split:id` where the two read several splits between them."""
        shown: list[int | str | None] = []
        if side not in self.strange:
            ranks, ids = self._read(side, start, stop)
            names = list(self._ranks)
            shown += [
                f"{names[rank]}:{i}" if len(names) > 1 else i
                for rank, i in zip(ranks.tolist(), ids.tolist(), strict=True)
            ]
        return shown + [None] * (stop - start - len(shown))
