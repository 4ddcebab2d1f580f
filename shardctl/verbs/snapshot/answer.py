"""What fixes an order, and distinguishes it from every other?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.base.arguments import checked
from shardctl.base.columns import Answer
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress, Watch
from shardctl.base.text import counted, in_short
from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.dataset.dataset import DatasetLike, as_dataset
from shardctl.order.order_tree import NEWEST, HashTree, tree_of
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.sources import spec_as_given
from shardctl.saved.snapshot import (
    NUM_FIRST_IDS,
    Snapshot,
    pinned_layout,
    pinned_sources,
    shortened,
)
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import SettingsLike, as_settings, settings_in_force


@dataclass(frozen=True, kw_only=True)
class TakenSnapshot(Answer):
    """A snapshot, the order it was taken of, and warnings about the spec."""

    snapshot: Snapshot
    live: PlannedOrder

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the spec."""
        return self.live.warnings

    def __repr__(self) -> str:
        return in_short(
            self,
            f"{self.snapshot.title} {self.snapshot.spec}",
            counted(self.snapshot.num_examples, "example"),
        )


@checked
def snapshot(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    watch: Watch | None = None,
    **keywords: Unpack[OrderSettings],
) -> TakenSnapshot:
    """Return a snapshot of the order in which a pipeline reads a spec: what fixes the order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: the split or slice, as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        A TakenSnapshot, which `shardctl.diff` compares with another.

    Raises:
        UsageError: a bad spec, or settings that contradict each other or the dataset.
            Or a pipeline without end.
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> taken = shardctl.snapshot("mnist", "test")
    >>> taken
    <TakenSnapshot mnist:3.0.1 test: 10,000 examples>
    >>> shardctl.diff(taken, shardctl.snapshot("mnist", "test")).equal
    True
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    live = plan_order(dataset, spec, settings)
    order = live.order
    # As they were written, also where settings without stages say the same.
    written = replace(settings, loader_version=order.settings.loader_version)
    if order.is_endless:
        ended = "take(10000)" if order.settings.reader.on_tf_data else "repeat(N)"
        raise refused(
            "{stages} repeat without end, and a snapshot holds a whole order; end them with {}",
            f"'.. | {ended}'",
        )
    dataset = order.dataset
    first = order.read(0, min(NUM_FIRST_IDS, order.num_examples))
    pinned = Snapshot(
        head=dataset.identity.without_folder(),
        ordered=dataset.ordered,
        splits=pinned_layout(dataset, live.splits.names),
        spec=spec_as_given(live.resolved, order.settings),
        pipeline=shortened(settings_in_force(written, ordered=dataset.ordered)),
        first_ids=tuple(order.codes.ids(first)),
        rules=ORDER_RULES,
        tree=tree_in(NEWEST, live, watch),
        sources=pinned_sources(live, written),
        assumptions=live.assumptions,
    )
    return TakenSnapshot(snapshot=pinned, live=live)


def tree_in(version: int, live: PlannedOrder, watch: Watch | None = None) -> HashTree:
    """Return the hash tree over an order, with digests of a version."""
    progress = Progress("ids", live.order.num_examples, watch=watch)
    return tree_of(live.order, version=version, advance=progress.advance)
