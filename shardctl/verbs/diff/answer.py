"""Where do two orders differ, how much of them moved, and why?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arguments import checked, keep_fields
from shardctl.base.arrays import Int64s, spans
from shardctl.base.by_name import provided
from shardctl.base.columns import Answer
from shardctl.base.progress import Progress
from shardctl.base.text import choices, counted, in_short
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.order.example_codes import PAD
from shardctl.order.order_tree import HashTree, differing_blocks, digests_of
from shardctl.order.plan_order import PlannedOrder
from shardctl.saved.snapshot import Snapshot, order_again
from shardctl.settings.names import settings_from_document
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.causes import Cause, causes
from shardctl.verbs.snapshot.answer import tree_in

_OF_PADDING = -1  # the rank of what is in no split


@dataclass(frozen=True, kw_only=True)
class PinnedOrder:
    """A snapshot and, where the order itself is known, that order.

    `label` names the side for people: a file, or the order as it is now.
    """

    snapshot: Snapshot
    label: str
    live: PlannedOrder | None = None

    def __post_init__(self) -> None:
        keep_fields(self)

    @cached_property
    def rebuilt(self) -> PlannedOrder | None:
        """The order again: the one that is known, or one from what the snapshot pins; else None.

        None where the layout or a list of files is pinned as hashes only, or where the rules of
        this version refuse the settings.
        """
        if self.live is not None:
            return self.live
        dataset = self.snapshot.dataset
        try:
            settings = self.snapshot.settings()
            if dataset is None or settings is None:
                return None
            # The order must have as many examples as the snapshot pins, or it is another one.
            live = order_again(self.snapshot, dataset, _of_pinned_files(settings, dataset))
        except ShardctlError:
            return None
        return live if live.order.num_examples == self.snapshot.num_examples else None

    @checked
    def holds(self, cells: Sequence[bytes], *, size: int, block: int) -> bool:
        """Return whether the digests of the cells of a block are those that are pinned.

        What is made of a known order needs no proof.
        """
        start = block * size
        if self.live is not None or start >= self.snapshot.num_examples:
            return True
        # The digest of the block's cells must be that in the pinned tree.
        num_examples = min(size, self.snapshot.num_examples - start)
        made = HashTree.of_cells(cells, num_examples=num_examples)
        return made.root == self.snapshot.tree.blocks(size)[block]

    def __repr__(self) -> str:
        return in_short(
            self,
            f"{self.label} {self.snapshot.spec}",
            counted(self.snapshot.num_examples, "example"),
        )


def _of_pinned_files(settings: ReadSettings, dataset: Dataset) -> ReadSettings:
    """Return the settings with a list of files that names the pinned ones, by their base names.

    A list may name files of splits that are not read, and folders; a snapshot keeps neither.
    """
    if settings.file_order is None:
        return settings
    known = {name for split in dataset.splits for name in split.filenames}
    names = (name.rpartition("/")[2] for name in settings.file_order)
    return replace(settings, file_order=tuple(name for name in names if name in known))


def settings_to_fall_back_on(pinned: Snapshot, dataset: Dataset) -> dict[str, Any]:
    """Return the arguments of `ReadSettings` that a snapshot means on the dataset as it is now.

    A cycle length that was the default of its dataset stays the default: it changes where the
    dataset has become an ordered one. A list of files that is pinned as a hash is left out, so that
    it has to be given again; so is the version of a loader whose library is installed, since that
    one reads now.
    """
    document = dict(pinned.pipeline)
    loader = LOADERS.get(str(document.get("loader")))
    if loader is not None and provided("installed_version")(loader.library) is not None:
        document.pop("loader_version", None)
    if isinstance(document.get("file_order"), str):
        del document["file_order"]
    default = ReadSettings().cycle_length(ordered=pinned.ordered)
    # A snapshot of a random-order dataset has TFDS's default of 16; for an ordered one the default
    # is 1.
    if pinned.ordered != dataset.ordered and document.get("cycle") == default:
        del document["cycle"]
    try:
        return settings_from_document(document)
    except UsageError as error:
        raise UsageError(f"the snapshot's pipeline: {error}") from None


EXACT_LIMIT = 5_000_000  # positions in blocks that differ up to which every one is compared
NUM_NEIGHBOURS = 3


@dataclass(frozen=True, kw_only=True)
class OrderDifference:
    """Where two orders first differ: at `position`, or somewhere in [position, stop).

    `expected` and `actual` are ids, None where the order has ended or is not known there.
    """

    position: int
    expected: Id | None
    actual: Id | None
    stop: int

    @property
    def exact(self) -> bool:
        """Whether the position is known."""
        return self.stop == self.position + 1


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The ids of both orders from `start` on, None where one has ended."""

    start: int
    expected: tuple[Id | None, ...]
    actual: tuple[Id | None, ...]


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How many of `positions` have another example: a number between the two, both included."""

    at_least: int
    at_most: int
    positions: int


@dataclass(frozen=True, kw_only=True)
class Diff(Answer):
    """The answer: `changes` is everything pinned that differs, also where the orders are equal."""

    expected: PinnedOrder
    actual: PinnedOrder
    first: OrderDifference | None
    neighbours: Neighbours | None
    moved: Moved
    changes: tuple[Cause, ...]
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the same examples are at the same positions.

        The ids may be the same and the examples not, where folders are read in another order.
        """
        return self.first is None and not any(cause.kind == "folders" for cause in self.changes)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the orders depend on though it was not stated.

        What is assumed of the pinned one is stated for the other, which is read by its settings.
        """
        return self.expected.snapshot.assumptions or self.actual.snapshot.assumptions

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What changed, where the orders differ for it."""
        if self.equal:
            return ()
        return self.changes or (Cause(kind="unknown", name="shardctl"),)

    def __repr__(self) -> str:
        sides, first = f"{self.expected.label}, {self.actual.label}", self.first
        if first is None:
            return in_short(self, sides, "equal" if self.equal else "folders differ")
        where = f"first at {first.position:,}: {first.expected} and {first.actual}"
        causes = f"causes {choices((cause.name for cause in self.causes), 6)}"
        return in_short(self, sides, where, causes)


@checked
def diff(expected: PinnedOrder, actual: PinnedOrder, *, exact_limit: int = EXACT_LIMIT) -> Diff:
    """Return where and why two orders differ, rebuilding no more than the blocks that differ.

    Every position is compared where at most `exact_limit` lie in such blocks; else only the first
    such block is rebuilt, and how much moved is known to a block.
    """
    if exact_limit < 0:
        raise UsageError(f"exact_limit={exact_limit}: a number of positions is needed")
    expected, actual = _in_one_version(expected, actual)
    trees = expected.snapshot.tree, actual.snapshot.tree
    # Only blocks whose digests differ can hold a difference.
    size, blocks = differing_blocks(*trees)
    positions = max(tree.num_examples for tree in trees)
    orders = TwoOrders(expected=expected, actual=actual, size=size, positions=positions)
    # The first differing block is rebuilt to find the position.
    scan = orders.scan(blocks[0]) if blocks else None
    first = _first(orders, blocks[0], scan) if blocks else None
    neighbours = None
    if first is not None and scan is not None:
        start = max(first.position - NUM_NEIGHBOURS, 0)
        old, new = orders.ids_of_both(start, min(first.position + NUM_NEIGHBOURS + 1, positions))
        neighbours = Neighbours(start=start, expected=tuple(old), actual=tuple(new))
    return Diff(
        expected=expected,
        actual=actual,
        first=first,
        neighbours=neighbours,
        moved=_moved(orders, blocks, scan, exact_limit),
        changes=causes(expected.snapshot, actual.snapshot),
        notes=tuple(map(_note, orders.not_reproduced)),
    )


def _in_one_version(one: PinnedOrder, other: PinnedOrder) -> tuple[PinnedOrder, PinnedOrder]:
    """Return two orders with digests of one version, that of a file where the other is known.

    Raises:
        UsageError: files of two versions, and the order of neither can be made again.
    """
    versions = one.snapshot.tree.version, other.snapshot.tree.version
    if versions[0] == versions[1]:
        return one, other
    sides = [(other, versions[0]), (one, versions[1])]
    # What is known needs no proof, and the order of a file may be too long to be made again.
    # False sorts first: sides that are known.
    for side, version in sorted(sides, key=lambda pair: pair[0].live is None):
        tree, live = side.snapshot.tree, side.rebuilt
        # An order made again must have the digests that its file has.
        if live is None or (side.live is None and tree_in(tree.version, live) != tree):
            continue
        made = replace(side, snapshot=replace(side.snapshot, tree=tree_in(version, live)))
        return (made, other) if side is one else (one, made)
    old, new = (one, other) if versions[0] < versions[1] else (other, one)
    raise UsageError(
        f"{old.label} has digests of version {min(versions)} and {new.label} of version "
        f"{max(versions)}, and neither order can be computed from its file; write the older one "
        "anew with shardctl snapshot -o FILE"
    )


def _first(orders: TwoOrders, block: int, scan: Scan | None) -> OrderDifference:
    start, stop = orders.span(block)
    if scan is not None:
        return _at(orders, scan.first)
    # The ids that snapshots hold for people may show the difference without a rebuild.
    sides = orders.expected.snapshot, orders.actual.snapshot
    if len({tuple(split.name for split in side.splits) for side in sides}) == 1:
        pairs = zip(sides[0].first_ids, sides[1].first_ids, strict=False)
        for at, (old, new) in enumerate(pairs):
            if at >= start and old != new:
                return OrderDifference(position=at, stop=at + 1, expected=old, actual=new)
    if start == orders.shorter:
        return _at(orders, start)  # one of them has ended
    return OrderDifference(position=start, stop=stop, expected=None, actual=None)


def _at(orders: TwoOrders, position: int) -> OrderDifference:
    (old,), (new,) = orders.ids_of_both(position, position + 1)
    return OrderDifference(position=position, stop=position + 1, expected=old, actual=new)


def _moved(orders: TwoOrders, blocks: Sequence[int], first: Scan | None, exact_limit: int) -> Moved:
    """Return how many positions differ: counted, or estimated from the blocks that do."""
    spans = [orders.span(block) for block in blocks]
    at_most = sum(stop - start for start, stop in spans)
    if first is not None and at_most <= exact_limit:
        counts = [first.num_positions]
        for block in blocks[1:]:
            scan = orders.scan(block)
            counts += [] if scan is None else [scan.num_positions]
        # One of the blocks could not be rebuilt: then only bounds are known.
        if len(counts) == len(blocks):
            return Moved(at_least=sum(counts), at_most=sum(counts), positions=orders.positions)
    # In a block before the end of both at least one position differs; past it all do.
    at_least = sum(max(stop - max(start, orders.shorter), 1) for start, stop in spans)
    return Moved(at_least=at_least, at_most=at_most, positions=orders.positions)


def _note(side: PinnedOrder) -> str:
    """Return why the order of a side is not known."""
    if side.rebuilt is None:
        return (
            f"{side.label} has only hashes of its layout or its file order, or settings that are "
            "now refused: blocks of positions are compared, not every position"
        )
    return (
        f"the settings in {side.label} now give another order than it records, so blocks of "
        f"positions are compared; it was written with rules {side.snapshot.rules}"
    )


# Two orders side by side, rebuilt block by block where their digests differ.

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

    After a scan `not_reproduced` are the sides that cannot be rebuilt as they were pinned.
    """

    expected: PinnedOrder
    actual: PinnedOrder
    size: int
    positions: int
    not_reproduced: list[PinnedOrder] = field(default_factory=list)

    @property
    def shorter(self) -> int:
        """Number of positions of the one that ends first."""
        return min(side.snapshot.num_examples for side in (self.expected, self.actual))

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
        if self.not_reproduced or stop - start > MAX_SCANNED:
            return None
        progress = Progress("positions", stop - start)
        cells: tuple[list[bytes], list[bytes]] = ([], [])
        first, count = stop, 0
        for begin, end in spans(start, stop, _PIECE):
            codes = [_codes(side, begin, end) for side in sides]
            for side, found, digests in zip(sides, codes, cells, strict=True):
                # Known orders need no digests; pinned ones are checked by them at the end.
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

    def ids_of_both(self, start: int, stop: int) -> list[list[Id | None]]:
        """Return the ids of both at [start, stop)."""
        return [self.ids(side, start, stop) for side in (self.expected, self.actual)]

    def ids(self, side: PinnedOrder, start: int, stop: int) -> list[Id | None]:
        """Return ids as ints, or as `split:id` where the two read several splits between them.

        None stands for a position past the end, or one of a side that is not reproduced.
        """
        shown: list[Id | None] = []
        if not any(side is other for other in self.not_reproduced):
            ranks, ids = self._ranked(side, _codes(side, start, stop))
            names = list(self._ranks)
            # Several splits between the two: ids alone would be ambiguous.
            shown += [
                PAD if rank == _OF_PADDING else f"{names[rank]}:{i}" if len(names) > 1 else i
                for rank, i in zip(ranks.tolist(), ids.tolist(), strict=True)
            ]
        return shown + [None] * (stop - start - len(shown))

    def _differ(self, old: Int64s, new: Int64s, count: int) -> NDArray[np.bool_]:
        """Return where two runs of codes name other examples, bool[count]; past an end they do."""
        # Past the end of the shorter one everything differs.
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
        # Splits are numbered by name, so both sides agree on them.
        return np.array([self._ranks.get(name, _OF_PADDING) for name in splits.names], np.int64)[
            split
        ], ids

    @cached_property
    def _ranks(self) -> dict[str, int]:
        names = [s.name for side in (self.expected, self.actual) for s in side.snapshot.splits]
        return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _codes(side: PinnedOrder, start: int, stop: int) -> Int64s:
    """Return the codes at [start, stop) as far as the order goes."""
    assert side.rebuilt is not None
    stop = min(stop, side.rebuilt.order.num_examples)
    return side.rebuilt.order.read(min(start, stop), stop)
