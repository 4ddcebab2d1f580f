"""Where and why do two orders, or two plans, differ, given as values or as their files?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from shardctl.base.arguments import checked, made_kind
from shardctl.base.text import printable, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.files.fields import said_about
from shardctl.metadata.reference import read_dataset
from shardctl.saved.comparable_file import listing_of_plan, read_comparable
from shardctl.saved.pinned_sources import dataset_as_given, ref_as_pinned, spec_as_pinned
from shardctl.saved.resume_plan import ListedPlan, PlanListing, ResumePlan
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.spec.reads import reads_of
from shardctl.stores.file_text import working_folder
from shardctl.verbs.diff.answer import EXACT_LIMIT, Diff, PinnedOrder, settings_to_fall_back_on
from shardctl.verbs.diff.answer import diff as compare
from shardctl.verbs.diff.plans import PlansDiff, diff_plans
from shardctl.verbs.plan.answer import Plans
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot_in

_Values = Snapshot | TakenSnapshot | PinnedOrder | ResumePlan | Plans | PlanListing


def _comparable(given: object) -> object | None:
    return given if isinstance(given, _Values | str | os.PathLike) else None


_KIND = made_kind(
    _comparable,
    needed="the path of a snapshot or of a plan, or what snapshot, plan or resume returns,",
    several="snapshots and plans",
)
Comparable = Annotated[_Values | str | os.PathLike[str], _KIND]


@checked
def diff(
    expected: Comparable,
    actual: Comparable | None = None,
    *,
    dataset: DatasetLike | None = None,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    exact_limit: int = EXACT_LIMIT,
) -> Diff | PlansDiff:
    """Return where and why two orders, or two plans, differ.

    No more than the blocks of an order that differ are rebuilt.

    Args:
        expected: a snapshot or a plan: the path of its file, or what `snapshot`, `plan`, `resume`,
            `read_snapshot` or `read_plan` returned.
        actual: another of the same kind. None is the order of a snapshot as it is now.
        dataset: without `actual`, the dataset as it is now; None is what the snapshot names.
        spec, settings: without `actual`, what is read now and how; None is as in the snapshot, but
            of a loader the installed version.
        exact_limit: positions in blocks that differ up to which every one is compared; of more, how
            much moved is known to a block.

    Returns:
        A `Diff` of two orders, a `PlansDiff` of two plans: `equal`, and else what differs first.

    Raises:
        DatasetError: a file cannot be read, or nothing is at the dataset that the snapshot names.
        UsageError: a snapshot and a plan, a plan on its own, or `actual` together with settings.

    >>> import shardctl
    >>> before = shardctl.snapshot("mnist", "test")
    >>> shardctl.diff(before, shardctl.snapshot("mnist", "test")).equal
    True
    >>> shardctl.diff(before, settings=shardctl.ReadSettings(shuffle_seed=1)).equal  # one file
    True
    >>> shardctl.diff(before, spec="test[1:]").first.actual
    1
    """
    if exact_limit < 0:
        raise UsageError(f"exact_limit={exact_limit}: a number from 0 is needed")
    first, label = _opened(expected, "expected")
    if actual is None:
        if isinstance(first, PlanListing):
            raise UsageError("expected is a plan; give actual, another to compare it with")
        today = _now(first, expected, dataset, spec, settings)
        return compare(first, today, exact_limit=exact_limit)
    if not (dataset is None and spec is None and settings is None):
        raise UsageError(
            "dataset, spec and settings are about the order as it is now; leave them out, or actual"
        )
    second, other = _opened(actual, "actual")
    if isinstance(first, PinnedOrder) and isinstance(second, PinnedOrder):
        return compare(first, second, exact_limit=exact_limit)
    if isinstance(first, PlanListing) and isinstance(second, PlanListing):
        return diff_plans(first, second, labels=(label, other))
    kinds = ["snapshot" if isinstance(one, PinnedOrder) else "plan" for one in (first, second)]
    raise UsageError(
        f"{quoted(label, 200)} is a {kinds[0]} and {quoted(other, 200)} a {kinds[1]}; two of one "
        "kind are compared"
    )


def _opened(given: Any, name: str) -> tuple[PinnedOrder | PlanListing, str]:
    """Return what is compared of a side, and what it is called."""
    label = name
    if isinstance(given, str | os.PathLike):
        label = printable(os.fspath(given))
        given = read_comparable(Path(given))
    if isinstance(given, PinnedOrder):
        return given, given.label
    if isinstance(given, TakenSnapshot):
        return PinnedOrder(snapshot=given.snapshot, label=label, live=given.live), label
    if isinstance(given, Snapshot):
        return PinnedOrder(snapshot=given, label=label), label
    if isinstance(given, ResumePlan):
        return listing_of_plan(given), label
    return _listing(given) if isinstance(given, Plans) else given, label


def _listing(plans: Plans) -> PlanListing:
    def listed(index: int) -> ListedPlan:
        plan = plans.plans[index]
        host = "" if plan.host is None else f", host {plan.host.index} of {plan.host.count}"
        reads = reads_of(plans.dataset, plan.ranges)
        return ListedPlan(title=f"{printable(plan.spec)}{host}", reads=reads)

    return PlanListing(
        kind="plan",
        dataset=plans.dataset.identity,
        plans=tuple(map(listed, range(len(plans.plans)))),
    )


def _now(
    pinned: PinnedOrder,
    given: object,
    dataset: DatasetLike | None,
    spec: str | None,
    settings: SettingsLike | None,
) -> PinnedOrder:
    """Return the order as it is now; what is not said is as it was pinned."""
    kept = pinned.snapshot
    here = _named_by(pinned, given) if dataset is None else as_dataset(dataset)
    if settings is None:
        settings = ReadSettings(**settings_to_fall_back_on(kept, here))
    settings = as_settings(settings)
    spec = spec_as_pinned(kept, settings) if spec is None else spec
    taken = snapshot_in(here, spec, settings, version=kept.tree.version)
    return PinnedOrder(snapshot=taken.snapshot, label="today", live=taken.live)


def _named_by(pinned: PinnedOrder, given: object) -> Dataset:
    if pinned.live is not None:
        return dataset_as_given(pinned.live)
    kept, folder = pinned.snapshot, working_folder()
    if isinstance(given, str | os.PathLike):
        folder /= Path(given).parent
    try:
        with said_about(pinned.label):
            return read_dataset(kept.refs or (ref_as_pinned(kept),), env=os.environ, cwd=folder)
    except DatasetError as error:
        raise DatasetError(f"{error}; say where the dataset is with --dataset REF") from error
