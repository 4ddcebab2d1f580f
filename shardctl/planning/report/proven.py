"""Whether the order that is made again from a snapshot is the one that was pinned."""

from __future__ import annotations

from shardctl.core.progress import Progress
from shardctl.core.snapshot.order_tree import cells_of
from shardctl.core.tfds_rules import ORDER_RULES
from shardctl.planning.diff.pinned_order import PinnedOrder
from shardctl.planning.order import PlannedOrder
from shardctl.planning.report.shown import NotShown

_PROVEN = 1 << 21  # positions that are compared where the rules are those of today
_ALL = 1 << 27  # positions up to which all are compared where they are not, in some seconds


def proven(pinned: PinnedOrder) -> PlannedOrder | NotShown:
    """Return the order of a snapshot, made again and compared with its hash tree.

    Under the rules of today the first blocks are compared; under others every one, since what was
    measured of another order would look right.
    """
    live = pinned.rebuilt
    if live is None:
        return NotShown(
            reason="it pins its layout or its file order as hashes, or settings that are refused "
            "today: its order cannot be made again"
        )
    if pinned.live is not None:
        return live
    tree = pinned.snapshot.tree
    written = pinned.snapshot.rules
    is_todays = written.version == ORDER_RULES.version
    if not is_todays and tree.num_examples > _ALL:
        return NotShown(
            reason=f"it was written with rules {written}, and {tree.num_examples:,} positions are "
            "too many to see whether those of today make the same order"
        )
    size = tree.leaf_size
    limit = max(size, _PROVEN) if is_todays else tree.num_examples
    progress = Progress(None, "positions", min(limit, tree.num_examples))
    for block, start in enumerate(range(0, min(limit, tree.num_examples), size)):
        stop = min(start + size, tree.num_examples)
        cells = list(cells_of(live.order, start, stop, live.splits, version=tree.version))
        if not pinned.holds(cells, size=size, block=block):
            return NotShown(
                reason="what it pins gives another order today; it was written with rules "
                f"{written}"
            )
        progress.advance(stop - start)
    return live
