"""One of two pipelines that are compared: a snapshot, or settings on a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.identity import DatasetHead
from shardctl.core.progress import Progress, Watch
from shardctl.core.settings.document import SettingsDocument, settings_in_force
from shardctl.core.settings.read_settings import ReadSettings, with_stand_in_seeds
from shardctl.core.snapshot.order_tree import digests_of
from shardctl.core.tfds_rules import ORDER_RULES, RuleSet
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.planning.diff.diff import PinnedOrder
from shardctl.planning.eval.eval import Evaluation, evaluate, of_training
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.hosts.hosts import hosts as plan_hosts
from shardctl.planning.order import PlannedOrder, as_warnings, plan_order
from shardctl.planning.quality.quality import DEFAULT_WINDOW, Quality, quality, quality_of
from shardctl.planning.report.shown import NotShown, Shown, shown, shown_of
from shardctl.planning.shard_map import ShardMap, shard_map
from shardctl.planning.snapshot import snapshot

Answer = TypeVar("Answer")


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
        with stand-ins for seeds that nobody gave. shard_map: of the order that quality measures.
    """

    label: str
    is_snapshot: bool
    head: DatasetHead
    spec: str
    settings: SettingsDocument
    rules: RuleSet
    order: Shown[PinnedOrder]
    quality: Shown[Quality]
    shard_map: Shown[ShardMap]
    hosts: Shown[HostsPlan]
    evaluation: Shown[Evaluation]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of both pipelines, see `compare_sides`."""

    hosts: int
    devices: int
    evaluated: str | None
    watch: Watch | None


def compared(side: Side, asked: Asked) -> ComparedSide:
    """Return what is known of one of two pipelines.

    Raises:
        UsageError: settings that their dataset does not take, or a spec that it does not have.
    """
    if side.pinned is not None:
        return _of_snapshot(side.label, side.pinned, asked)
    assert side.dataset is not None
    assert side.settings is not None
    return _of_settings(side.label, side.dataset, side.spec, side.settings, asked)


def _of_snapshot(label: str, pinned: PinnedOrder, asked: Asked) -> ComparedSide:
    kept, live = pinned.snapshot, proven(pinned)
    parts: tuple[Shown[Quality], Shown[HostsPlan], Shown[Evaluation]]
    if isinstance(live, NotShown):
        parts = live, live, live
    else:
        order = live
        parts = (
            shown(lambda: quality_of(order)),
            _of_pinned(pinned, lambda d, s: plan_hosts(d, kept.spec, s, hosts=asked.hosts)),
            NotShown(reason=f"a snapshot pins what its order reads, {kept.spec}; nothing else")
            if asked.evaluated is None
            else _of_pinned(pinned, lambda d, s: _evaluated(d, s, order, asked)),
        )
    return ComparedSide(
        label=label,
        is_snapshot=True,
        head=kept.identity,
        spec=kept.spec,
        settings=dict(kept.pipeline),
        rules=kept.rules,
        order=pinned,
        quality=parts[0],
        shard_map=_shard_map(parts[0]),
        hosts=parts[1],
        evaluation=parts[2],
        warnings=(
            *(() if isinstance(live, NotShown) else live.warnings),
            *as_warnings(kept.assumptions),
        ),
    )


def _of_pinned(
    pinned: PinnedOrder, ask: Callable[[Dataset, ReadSettings], Answer]
) -> Shown[Answer]:
    """Return an answer about the dataset that a snapshot pins, under its settings."""
    kept = pinned.snapshot
    if any(source.data is not None for source in kept.sources):
        return NotShown(reason="its stages name datasets of their own, which are pinned together")

    def answer() -> Answer:
        dataset, settings = kept.dataset, kept.settings()
        if dataset is None or settings is None:
            raise UsageError("its layout or its file order is pinned as hashes")
        return ask(dataset, settings)

    return shown(answer)


def _of_settings(
    label: str, dataset: Dataset, spec: str | None, settings: ReadSettings, asked: Asked
) -> ComparedSide:
    def pinned() -> PinnedOrder:
        taken = snapshot(dataset, spec, settings, watch=asked.watch)
        return PinnedOrder(snapshot=taken.snapshot, label=label, live=taken.live)

    live: PlannedOrder | None = None
    try:
        live = plan_order(dataset, spec, settings)
        order: Shown[PinnedOrder] = shown(pinned)
    except UnpredictableOrderError as error:  # its quality can still be told, with stand-ins
        order = NotShown(reason=error.args[0])
    measured = shown(lambda: quality(dataset, spec, settings))
    warnings: list[str] = []
    if live is not None:
        warnings += (*live.warnings, *as_warnings(live.assumptions))
    elif not isinstance(measured, NotShown):
        warnings += measured.warnings
    kept = None if isinstance(order, NotShown) else order.snapshot
    return ComparedSide(
        label=label,
        is_snapshot=False,
        head=dataset.identity if kept is None else kept.identity,
        spec=_spec(dataset, spec, settings, measured) if kept is None else kept.spec,
        settings=settings_in_force(settings, ordered=dataset.ordered)
        if kept is None
        else dict(kept.pipeline),
        rules=ORDER_RULES,
        order=order,
        quality=measured,
        shard_map=_shard_map(measured),
        hosts=shown(lambda: plan_hosts(dataset, spec, settings, hosts=asked.hosts)),
        evaluation=shown(lambda: _evaluated(dataset, settings, live, asked)),
        warnings=tuple(warnings),
    )


def _spec(
    dataset: Dataset, spec: str | None, settings: ReadSettings, measured: Shown[Quality]
) -> str:
    if not isinstance(measured, NotShown):
        return measured.spec
    try:
        return plan_order(dataset, spec, with_stand_in_seeds(settings)[0]).spec
    except UnpredictableOrderError:
        return spec or "train"


def _shard_map(quality: Shown[Quality]) -> Shown[ShardMap]:
    return shown_of(quality, lambda found: shard_map(found.order, found.sample))


def _evaluated(
    dataset: Dataset, settings: ReadSettings, planned: PlannedOrder | None, asked: Asked
) -> Evaluation:
    made = None if planned is None else planned.order.batch_size
    batch = settings.batch or made or DEFAULT_WINDOW
    return evaluate(
        dataset,
        asked.evaluated,
        of_training(settings)[0],
        batch=-(-batch // asked.devices),
        hosts=asked.hosts,
        devices=asked.devices,
    )


# Whether the order that is made again from a snapshot is the one that was pinned.

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
        codes = live.order.chunks(start, stop)
        cells = list(digests_of(codes, live.splits, version=tree.version))
        if not pinned.holds(cells, size=size, block=block):
            return NotShown(
                reason="what it pins gives another order today; it was written with rules "
                f"{written}"
            )
        progress.advance(stop - start)
    return live
