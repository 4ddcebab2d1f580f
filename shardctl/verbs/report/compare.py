"""Two pipelines side by side: where their orders part, and how well each is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from shardctl.base.hooks import provided
from shardctl.base.progress import Progress, Watch
from shardctl.base.text import in_short
from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.order_tree import digests_of
from shardctl.order.plan_order import PlannedOrder, as_warnings, plan_order
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings, SettingsDocument, settings_in_force
from shardctl.verbs.diff.answer import Diff, PinnedOrder, diff
from shardctl.verbs.diff.causes import Cause, dataset_causes
from shardctl.verbs.eval.answer import Evaluation
from shardctl.verbs.hosts.answer import HostsPlan
from shardctl.verbs.hosts.answer import hosts as plan_hosts
from shardctl.verbs.quality.answer import DEFAULT_WINDOW, Quality, quality, quality_of
from shardctl.verbs.report.answer import evaluation_beside
from shardctl.verbs.report.question import (
    STAND_IN_HOSTS,
    NotShown,
    Shown,
    nobody_said_hosts,
    refuse_counts,
    shown,
    shown_of,
)
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
    order: what is compared of it. quality, hosts, evaluation: the answers of these verbs, quality
        with stand-ins for seeds that nobody gave.
    """

    label: str
    is_snapshot: bool
    head: DatasetHead
    spec: str
    settings: SettingsDocument
    rules: RuleSet
    order: Shown[PinnedOrder]
    quality: Shown[Quality]
    hosts: Shown[HostsPlan]
    evaluation: Shown[Evaluation]
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
class ReportComparison:
    """Two pipelines side by side; `diff` says where their orders part.

    dataset_changes: what differs of the two datasets and their layouts; where there is something,
        equal ids need not be equal examples.
    num_hosts, num_devices: of `hosts` and `evaluation` on both sides.
    hosts_said: whether somebody said how many hosts there are; else it is a stand-in.
    """

    a: ComparedSide
    b: ComparedSide
    diff: Shown[Diff]
    dataset_changes: tuple[Cause, ...]
    num_hosts: int
    hosts_said: bool
    num_devices: int
    notes: tuple[str, ...] = ()

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
        """Whether both hand out the same order; None where that cannot be told."""
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
        said = {None: "not to be compared", True: "equal", False: "they part"}
        return in_short(self, f"{self.a.label}, {self.b.label}", said[self.equal])


def compare_sides(
    a: Side,
    b: Side,
    *,
    hosts: int | None = None,
    devices: int = 1,
    evaluated: str | None = None,
    watch: Watch | None = None,
) -> ReportComparison:
    """Return two pipelines side by side.

    A snapshot counts as it was pinned: its order is made again from what it holds, so its dataset
    need not be there.

    Args:
        a, b: what is compared, a as it was expected.
        hosts: how many share the examples; None is what the settings say, else 8.
        devices: how many each host has, which share its batch in an evaluation.
        evaluated: what is evaluated on; None is as of `evaluate`, of a snapshot nothing.
        watch: is called as the work proceeds.

    Raises:
        UsageError: settings that their dataset does not take, or a spec that it does not have.
    """
    refuse_counts(hosts=hosts, devices=devices)
    said_hosts = hosts or next(filter(None, map(_said_hosts, (a, b))), None)
    num_hosts = said_hosts or STAND_IN_HOSTS
    one, other = (
        compared(side, hosts=num_hosts, devices=devices, evaluated=evaluated, watch=watch)
        for side in (a, b)
    )
    notes = [nobody_said_hosts()] if said_hosts is None else []
    found = _difference(one, other)
    return ReportComparison(
        a=one,
        b=other,
        diff=found,
        dataset_changes=_dataset_changes(one, other, found),
        num_hosts=num_hosts,
        hosts_said=said_hosts is not None,
        num_devices=devices,
        notes=(*notes, *_meant_batches(one, other)),
    )


def _meant_batches(*sides: ComparedSide) -> Iterator[str]:
    """Yield that the batch of an evaluation is a stand-in, once for both."""
    named = [
        side.label
        for side in sides
        if not isinstance(side.evaluation, NotShown)
        and side.settings.get("batch") is None
        and side.settings.get("stages") is None
    ]
    if named:
        whose = " and of ".join(named)
        yield (
            f"nobody said how large a batch of {whose} is: {DEFAULT_WINDOW} examples are meant in "
            "its evaluation"
        )


def _said_hosts(side: Side) -> int | None:
    """Return the number of hosts that settings name, None where they name none."""
    if side.pinned is None:
        host = side.settings and side.settings.host
        return host.count if host else None
    count = str(side.pinned.snapshot.pipeline.get("host")).partition("/")[2]
    return int(count) if count.isdecimal() else None


def _difference(one: ComparedSide, other: ComparedSide) -> Shown[Diff]:
    for side in (one, other):
        if isinstance(side.order, NotShown):
            return NotShown(reason=f"{side.label} has no one order: {side.order.reason}")
    return shown_of(one.order, lambda a: shown_of(other.order, lambda b: diff(a, b)))


def _dataset_changes(
    one: ComparedSide, other: ComparedSide, found: Shown[Diff]
) -> tuple[Cause, ...]:
    if not isinstance(found, NotShown):
        kinds = ("dataset", "folders", "split", "shards")
        return tuple(cause for cause in found.changes if cause.kind in kinds)
    return tuple(dataset_causes(one.head, other.head, leaving_out=("data_dir", "splits")))


# What is known of one of two pipelines.


_Reading = tuple[Dataset, str | None, ReadSettings]


def compared(
    side: Side, *, hosts: int, devices: int, evaluated: str | None, watch: Watch | None
) -> ComparedSide:
    """Return what is known of one of two pipelines, see `compare_sides`.

    Raises:
        UsageError: settings that their dataset does not take, or a spec that it does not have.
    """
    pinned = side.pinned
    order: Shown[PinnedOrder]
    read: Shown[_Reading]
    evaluation: Shown[Evaluation] | None = None
    if pinned is not None:
        order, live = pinned, proven(pinned)
        read = shown_of(live, lambda _: _pinned_reading(pinned.snapshot))
        measured = shown_of(live, quality_of)
        if evaluated is None and not isinstance(live, NotShown):
            reason = f"a snapshot pins what its order reads, {live.spec}; nothing else"
            evaluation = NotShown(reason=reason)
    else:
        assert side.dataset is not None
        assert side.settings is not None
        dataset, spec, settings = read = side.dataset, side.spec, side.settings
        try:
            live = plan_order(dataset, spec, settings)
        except UnpredictableOrderError as error:  # its quality can still be told, with stand-ins
            live = NotShown(reason=error.args[0])

        def taken(_: PlannedOrder) -> PinnedOrder:
            found = snapshot(dataset, spec, settings, watch=watch)
            return PinnedOrder(snapshot=found.snapshot, label=side.label, live=found.live)

        order = shown_of(live, taken)
        measured = shown(lambda: quality(dataset, spec, settings))
    if evaluation is None:
        made = None if isinstance(live, NotShown) else live.order.batch_size
        evaluation = shown_of(
            read,
            lambda given: evaluation_beside(
                given[0],
                evaluated,
                given[2],
                batch=-(-(given[2].batch or made or DEFAULT_WINDOW) // devices),
                hosts=hosts,
                devices=devices,
            ),
        )
    warned = measured if isinstance(live, NotShown) else live
    warnings = () if isinstance(warned, NotShown) else warned.warnings
    if isinstance(order, NotShown):  # of settings
        head, rules = dataset.identity, ORDER_RULES
        in_force = settings_in_force(settings, ordered=dataset.ordered)
        read_spec = (spec or "train") if isinstance(measured, NotShown) else measured.spec
    else:
        kept = order.snapshot
        head, rules, in_force, read_spec = kept.identity, kept.rules, dict(kept.pipeline), kept.spec
        warnings = (*warnings, *as_warnings(kept.assumptions))
    return ComparedSide(
        label=side.label,
        is_snapshot=pinned is not None,
        head=head,
        spec=read_spec,
        settings=in_force,
        rules=rules,
        order=order,
        quality=measured,
        hosts=shown_of(read, lambda given: plan_hosts(*given, hosts=hosts)),
        evaluation=evaluation,
        warnings=tuple(warnings),
    )


def _pinned_reading(kept: Snapshot) -> _Reading:
    """Return the dataset that a snapshot pins, and what it reads of it with which settings."""
    if any(source.data is not None for source in kept.sources):
        raise UsageError("its stages name datasets of their own, which are pinned together")
    dataset, settings = kept.dataset, kept.settings()
    if dataset is None or settings is None:
        raise UsageError("its layout or its file order is pinned as hashes")
    return dataset, kept.spec, settings


# Whether the order that is made again from a snapshot is the one that was pinned.

_PROVEN = 1 << 21  # positions that are compared where the rules are those of today
_ALL = 1 << 27  # positions up to which all are compared where they are not, in some seconds


def proven(pinned: PinnedOrder) -> Shown[PlannedOrder]:
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
        codes = live.order.chunks(start, stop)
        cells = list(digests_of(codes, live.splits))
        if not pinned.holds(cells, size=size, block=block):
            return NotShown(
                reason="what it pins gives another order today; it was written with rules "
                f"{written}"
            )
        progress.advance(stop - start)
    return live
