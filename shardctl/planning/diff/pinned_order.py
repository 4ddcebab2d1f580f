"""A snapshot as one side of a comparison, and the order itself where it is available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shardctl.core.arguments.checked import checked, keep_fields
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.loaders.loader import LOADERS
from shardctl.core.provided import provided
from shardctl.core.settings.names import settings_from_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.hash_tree import HashTree
from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.core.text import counted, in_short
from shardctl.errors import ShardctlError, UsageError
from shardctl.planning.order import PlannedOrder
from shardctl.planning.pinned_sources import order_again
from shardctl.planning.snapshot import tree_in


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
        if dataset is None:
            return None
        try:
            settings = self.snapshot.settings()
            if settings is None:
                return None
            live = order_again(self.snapshot, dataset, _of_pinned_files(settings, dataset))
        except ShardctlError:
            return None
        if live.order.num_examples != self.snapshot.num_examples:
            return None
        return live

    @checked
    def holds(self, cells: Sequence[bytes], *, size: int, block: int) -> bool:
        """Return whether the digests of the cells of a block are those that are pinned.

        What is made of a known order needs no proof.
        """
        start = block * size
        if self.live is not None or start >= self.snapshot.num_examples:
            return True
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
    if pinned.ordered != dataset.ordered and document.get("cycle") == default:
        del document["cycle"]
    try:
        return settings_from_document(document)
    except UsageError as error:
        raise UsageError(f"the snapshot's pipeline: {error}") from None


def redigested(pinned: PinnedOrder, version: int) -> PinnedOrder | None:
    """Return it with digests of a version; None where its order cannot be made as pinned."""
    tree, live = pinned.snapshot.tree, pinned.rebuilt
    if tree.version == version:
        return pinned
    if live is None or (pinned.live is None and tree_in(tree.version, live) != tree):
        return None
    return replace(pinned, snapshot=replace(pinned.snapshot, tree=tree_in(version, live)))
