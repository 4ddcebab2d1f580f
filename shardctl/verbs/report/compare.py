"""Two pipelines side by side: where their orders differ, and how well each is shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

from shardctl.base.by_name import provided
from shardctl.base.columns import Answer
from shardctl.base.progress import Watch
from shardctl.base.text import in_short
from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead
from shardctl.order.order_tree import digests_of
from shardctl.order.plan_order import PlannedOrder, as_warnings
from shardctl.settings.read_settings import ReadSettings, SettingsDocument, settings_in_force
from shardctl.verbs.diff.answer import Diff, PinnedOrder, diff
from shardctl.verbs.diff.causes import Cause, dataset_causes
from shardctl.verbs.quality.answer import Quality, quality, quality_of
from shardctl.verbs.report.answer import NotShown, Shown, shown, shown_of
from shardctl.verbs.snapshot.answer import snapshot


@dataclass(frozen=True, kw_only=True)
class Side:
    """What is compared: a snapshot, or settings on a dataset.

    label: what people call it, as the path of its file.
    pinned: the snapshot; of settings None, and then `dataset` and `settings` are there.
    """

    label: str
    pinned: PinnedOrder | None = None
    dataset: Dataset | None = None
    spec: str | None = None
    settings: ReadSettings | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedSide:
    """One of the two pipelines. A part that cannot be had says why, see `NotShown`.

    is_snapshot: whether it is as it was pinned, and not as its dataset and settings are now.
    settings: every setting in force, by name. rules: of TensorFlow and TFDS, behind the order.
    order: what is compared of it. quality: with example seeds where seeds are missing.
    """

    label: str
    is_snapshot: bool
    head: DatasetHead
    spec: str
    settings: SettingsDocument
    rules: RuleSet
    order: Shown[PinnedOrder]
    quality: Shown[Quality]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ComparedSetting:
    """A setting in force on both sides; None where a side does not have it."""

    name: str
    a: object
    b: object

    @property
    def differs(self) -> bool:
        """Whether the two have other values."""
        return self.a != self.b


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportComparison(Answer):
    """Two pipelines side by side; `diff` says where their orders differ.

    dataset_changes: what differs of the two datasets and their layouts; where there is something,
        equal ids need not be equal examples.
    """

    a: ComparedSide
    b: ComparedSide
    diff: Shown[Diff]
    dataset_changes: tuple[Cause, ...]

    @property
    def sides(self) -> tuple[ComparedSide, ComparedSide]:
        """Both of them, the expected one first."""
        return self.a, self.b

    @property
    def warnings(self) -> tuple[str, ...]:
        """What surprises about each, by its label."""
        return tuple(f"{side.label}: {text}" for side in self.sides for text in side.warnings)

    @property
    def equal(self) -> bool | None:
        """Whether both yield the same order; None where that is not known."""
        return None if isinstance(self.diff, NotShown) else self.diff.equal

    @cached_property
    def settings(self) -> tuple[ComparedSetting, ...]:
        """Every setting that is in force on a side, with both values."""
        names = dict.fromkeys((*self.a.settings, *self.b.settings))
        return tuple(
            ComparedSetting(name=name, a=self.a.settings.get(name), b=self.b.settings.get(name))
            for name in names
        )

    def to_html(self) -> str:
        """Return the two side by side as one page that needs nothing else."""
        return "".join(provided("comparison_page")(self))

    def _repr_html_(self) -> str:
        return str(provided("comparison_body")(self))

    def __repr__(self) -> str:
        said = {None: "not comparable", True: "equal", False: "they differ"}
        return in_short(self, f"{self.a.label}, {self.b.label}", said[self.equal])


def compare_sides(a: Side, b: Side, *, watch: Watch | None = None) -> ReportComparison:
    """Return two pipelines side by side, `a` as it was expected.

    A snapshot counts as it was pinned: its order is made again from what it holds, so its dataset
    need not be there.
    """
    one, other = (compared(side, watch=watch) for side in (a, b))
    found = _difference(one, other)
    changes = _dataset_changes(one, other, found)
    return ReportComparison(a=one, b=other, diff=found, dataset_changes=changes)


def _difference(one: ComparedSide, other: ComparedSide) -> Shown[Diff]:
    for side in (one, other):
        if isinstance(side.order, NotShown):
            return NotShown(reason=f"the order of {side.label} is not known: {side.order.reason}")
    return shown_of(one.order, lambda a: shown_of(other.order, lambda b: diff(a, b)))


def _dataset_changes(
    one: ComparedSide, other: ComparedSide, found: Shown[Diff]
) -> tuple[Cause, ...]:
    if not isinstance(found, NotShown):
        kinds = ("dataset", "folders", "split", "shards")
        return tuple(cause for cause in found.changes if cause.kind in kinds)
    return tuple(dataset_causes(one.head, other.head, leaving_out=("data_dir", "splits")))


# What is known of one of two pipelines.


def compared(side: Side, *, watch: Watch | None = None) -> ComparedSide:
    """Return what is known of one of two pipelines, see `compare_sides`."""
    dataset, spec, settings = side.dataset, side.spec, side.settings
    order: Shown[PinnedOrder]
    measured: Shown[Quality]
    if side.pinned is not None:
        order, measured = side.pinned, shown_of(proven(side.pinned), quality_of)
    else:
        assert dataset is not None
        assert settings is not None

        def taken() -> PinnedOrder:
            found = snapshot(dataset, spec, settings, watch=watch)
            return PinnedOrder(snapshot=found.snapshot, label=side.label, live=found.live)

        order, measured = shown(taken), shown(lambda: quality(dataset, spec, settings))
    given = partial(
        ComparedSide,
        label=side.label,
        is_snapshot=side.pinned is not None,
        order=order,
        quality=measured,
    )
    warnings = () if isinstance(measured, NotShown) else measured.warnings
    if isinstance(order, PinnedOrder):
        kept = order.snapshot
        return given(
            head=kept.identity,
            spec=kept.spec,
            settings=dict(kept.pipeline),
            rules=kept.rules,
            warnings=(*warnings, *as_warnings(kept.assumptions)),
        )
    assert dataset is not None  # since it is no snapshot
    assert settings is not None
    return given(
        head=dataset.identity,
        spec=(spec or "train") if isinstance(measured, NotShown) else measured.spec,
        settings=settings_in_force(settings, ordered=dataset.ordered),
        rules=ORDER_RULES,
        warnings=warnings,
    )


_PROVEN = 1 << 21  # positions that are compared


def proven(pinned: PinnedOrder) -> Shown[PlannedOrder]:
    """Return the order of a snapshot, made again; its first blocks are compared with the pinned.

    What was measured of another order would look right.
    """
    live, tree, rules = pinned.rebuilt, pinned.snapshot.tree, pinned.snapshot.rules
    # Hashes alone cannot be turned into an order.
    if live is None:
        return NotShown(
            reason="it pins its layout or its file order as hashes, or settings that are refused "
            "today: its order cannot be rebuilt"
        )
    if pinned.live is not None:
        return live
    other = f"what it pins may give another order today; it was written with rules {rules}"
    # Under other rules the same settings may give another order.
    if rules.version != ORDER_RULES.version:
        return NotShown(reason=other)
    # Whole blocks of the tree, about _PROVEN positions.
    size, limit = tree.leaf_size, min(max(tree.leaf_size, _PROVEN), tree.num_examples)
    for block, start in enumerate(range(0, limit, size)):
        stop = min(start + size, tree.num_examples)
        codes = live.order.chunks(start, stop)
        cells = list(digests_of(codes, live.splits, version=tree.version))
        # The order made again is trusted only if its digests are those of the snapshot.
        if not pinned.holds(cells, size=size, block=block):
            return NotShown(reason=other.replace("may give", "gives"))
    return live
