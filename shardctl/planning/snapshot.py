"""What fixes an order, and what would tell it from every other?"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.cells import SplitIds, cell_digests
from shardctl.core.snapshot.hash_tree import HashTree
from shardctl.core.snapshot.pinned_layout import pinned_layout
from shardctl.core.snapshot.snapshot import NUM_FIRST_IDS, Snapshot, shortened
from shardctl.core.tfds_rules import ORDER_RULES
from shardctl.planning.progress import Progress, Watch
from shardctl.planning.simulate import plan_order


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveOrder:
    """An order that can be read, with the splits it reads."""

    spec: str
    order: Order
    splits: SplitIds
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, spec: str | None, settings: ReadSettings) -> LiveOrder:
        """Return the order of a spec; None is `train`, else the only split."""
        planned = plan_order(dataset, spec, settings)
        ranges = resolve_subsplit(planned.spec, dataset).ranges
        return cls(
            spec=planned.spec,
            order=planned.order,
            splits=SplitIds.of(dataset, (piece.split.name for piece in ranges)),
            warnings=planned.warnings,
        )

    def tree(self, start: int, stop: int, watch: Watch | None = None) -> HashTree:
        """Return the hash tree over positions [start, stop), at the speed of the order itself."""
        progress = Progress(watch, "ids", stop - start)
        chunks = progress.over(self.order.chunks(start, stop), len)
        return HashTree.of_cells(cell_digests(chunks, self.splits), num_examples=stop - start)


@dataclass(frozen=True, kw_only=True)
class TakenSnapshot:
    """A snapshot, the order it was taken of, and what surprises about the spec."""

    snapshot: Snapshot
    live: LiveOrder

    @property
    def warnings(self) -> tuple[str, ...]:
        """What surprises about the spec."""
        return self.live.warnings


def snapshot(
    dataset: Dataset,
    spec: str | None = None,
    settings: ReadSettings | None = None,
    *,
    watch: Watch | None = None,
) -> TakenSnapshot:
    """Return a snapshot of the order in which a pipeline reads a spec.

    Raises:
        UsageError: a bad spec, or settings that contradict each other or the dataset.
        UnpredictableOrderError: TensorFlow leaves the order open.

    >>> from shardctl.core.dataset.dataset import Split
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> taken = snapshot(Dataset(name="d", splits=(train,)), "train", ReadSettings(block=2))
    >>> taken.snapshot.num_examples, taken.snapshot.first_ids[:6]
    (12, (0, 1, 4, 5, 8, 9))
    """
    live = LiveOrder.of(dataset, spec, ReadSettings() if settings is None else settings)
    order = live.order
    first = order.read(0, min(NUM_FIRST_IDS, order.num_examples))
    pinned = Snapshot(
        head=dataset.identity.without_folder(),
        ordered=dataset.ordered,
        splits=pinned_layout(dataset, live.splits.names),
        spec=live.spec,
        pipeline=shortened(settings_in_force(order.settings, ordered=dataset.ordered)),
        first_ids=tuple(order.codes.ids(first)),
        rules=ORDER_RULES,
        tree=live.tree(0, order.num_examples, watch),
    )
    return TakenSnapshot(snapshot=pinned, live=live)
