"""Where two orders part, to be seen: block by block, and by name around the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from shardctl.core.snapshot.hash_tree import differing_blocks
from shardctl.errors import ShardctlError
from shardctl.planning.diff.blocks import Id, TwoOrders
from shardctl.planning.diff.diff import Diff
from shardctl.planning.diff.pinned_order import PinnedOrder

BlockState = Literal["same", "moved", "one has ended"]


@dataclass(frozen=True, kw_only=True)
class BlockRun:
    """Blocks [start, stop) of positions that follow each other and are in one state.

    In a block that is "moved" at least one position has another example; where "one has ended"
    only the longer order has positions.
    """

    start: int
    stop: int
    state: BlockState


@dataclass(frozen=True, kw_only=True)
class NamedPosition:
    """What two orders hand out at a position, as ids and as TFDS names it.

    None where an order has ended; a tfds_id also where nothing says what a file is called.
    """

    position: int
    a: Id | None
    b: Id | None
    a_tfds_id: str | None
    b_tfds_id: str | None

    @property
    def differs(self) -> bool:
        """Whether the two hand out another example."""
        return self.a != self.b


def block_runs(found: Diff) -> tuple[BlockRun, ...]:
    """Return the runs of blocks of one state that two orders have.

    The end of the shorter order is an edge of its own, wherever it lies in its block.
    """
    trees = found.expected.snapshot.tree, found.actual.snapshot.tree
    size, moved = differing_blocks(*trees)
    shorter, longer = sorted(tree.num_examples for tree in trees)
    edges: list[tuple[int, int, BlockState]] = []
    differs = set(moved)
    for block in range(-(-longer // size)):
        start, stop = block * size, min((block + 1) * size, longer)
        if start < shorter:
            end = min(stop, shorter)
            is_moved = block in differs and _is_moved(
                found, block, size=size, shorter=shorter, longer=longer
            )
            edges.append((start, end, "moved" if is_moved else "same"))
        if stop > shorter:
            edges.append((max(start, shorter), stop, "one has ended"))
    runs = []
    for state, group in groupby(edges, key=lambda edge: edge[2]):
        parts = list(group)
        runs.append(BlockRun(start=parts[0][0], stop=parts[-1][1], state=state))
    return tuple(runs)


def _is_moved(found: Diff, block: int, *, size: int, shorter: int, longer: int) -> bool:
    """Return whether a block that differs does so before the end of the shorter order.

    Where that cannot be told, since an order cannot be made again, it counts as if it did.
    """
    stop = min((block + 1) * size, longer)
    if shorter >= stop:
        return True
    orders = TwoOrders(expected=found.expected, actual=found.actual, size=size, positions=longer)
    scan = orders.scan(block)
    return scan is None or scan.num_positions > stop - shorter


def neighbours(found: Diff) -> tuple[NamedPosition, ...]:
    """Return what two orders hand out from a little before their first difference on.

    Where only the first ids of two orders are known it is the difference alone; where not even
    those are, nothing.
    """
    near, first = found.neighbours, found.first
    if first is None or not first.exact:
        return ()
    if near is None:
        a, b = first.expected, first.actual
        return (NamedPosition(position=first.position, a=a, b=b, a_tfds_id=None, b_tfds_id=None),)
    stop = near.start + len(near.expected)
    names = [_tfds_ids(side, near.start, stop) for side in (found.expected, found.actual)]
    rows = zip(near.expected, near.actual, *names, strict=True)
    return tuple(
        NamedPosition(position=position, a=a, b=b, a_tfds_id=one, b_tfds_id=other)
        for position, (a, b, one, other) in enumerate(rows, near.start)
    )


def _tfds_ids(side: PinnedOrder, start: int, stop: int) -> Sequence[str | None]:
    """Return TFDS's names at positions, as many as there are; None past the end, or unknown.

    Of files in several folders a name has a part of the path, which a snapshot does not keep.
    """
    nothing: list[str | None] = [None] * (stop - start)
    live = side.rebuilt
    if live is None or _folders_are_open(side):
        return nothing
    end = min(stop, live.order.num_examples)
    try:
        found = live.order.codes.tfds_ids(live.order.read(min(start, end), end))
    except ShardctlError:  # nothing says how the files are named
        return nothing
    return [*found, *nothing[len(found) :]]


def _folders_are_open(side: PinnedOrder) -> bool:
    """Whether files lie in several folders, or may, and only a snapshot says in which."""
    kept = side.snapshot
    several = any(pinned.split and len(pinned.split.files) > 1 for pinned in kept.splits)
    return side.live is None and (bool(kept.head.folders) or several)
