"""A snapshot as one side of a comparison, and the order itself where it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shardctl.core.snapshot import Snapshot
from shardctl.errors import ShardctlError
from shardctl.planning.snapshot import LiveOrder


@dataclass(frozen=True, kw_only=True, eq=False)
class PinnedOrder:
    """A snapshot and, where the order itself is at hand, that order.

    `label` names the side for people: a file, or today.
    """

    snapshot: Snapshot
    label: str
    live: LiveOrder | None = None

    @cached_property
    def rebuilt(self) -> LiveOrder | None:
        """The order again: the one at hand, or one from what the snapshot pins; else None.

        None where the layout or a list of files is pinned as hashes only, or where today's rules
        refuse the settings.
        """
        if self.live is not None:
            return self.live
        dataset = self.snapshot.dataset
        if dataset is None:
            return None
        try:
            settings = self.snapshot.settings()
            live = None if settings is None else LiveOrder.of(dataset, self.snapshot.spec, settings)
        except ShardctlError:
            return None
        if live is None or live.order.num_examples != self.snapshot.num_examples:
            return None
        return live

    def holds(self, size: int, block: int) -> bool:
        """Return whether the order again has the pinned digest of a block of `size` positions."""
        if self.rebuilt is None:
            return False
        if self.live is not None:
            return True
        start = block * size
        stop = min(start + size, self.snapshot.num_examples)
        if start >= stop:
            return True
        pinned = self.snapshot.tree.blocks(size)[block]
        return self.rebuilt.tree(start, stop).root == pinned
