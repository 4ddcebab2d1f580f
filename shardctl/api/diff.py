"""`shardctl.diff` and `compare_reports`: two orders, plans or pipelines, as values or as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from shardctl.api.settings_file import stated_settings
from shardctl.base.arguments import Kind, checked, kind_of, made_kind
from shardctl.base.progress import Watch
from shardctl.base.text import printable, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import DatasetError, ShardctlError, UnpredictableOrderError, UsageError
from shardctl.files.fields import said_about
from shardctl.metadata.project_file import Project, located, project_of
from shardctl.metadata.reference import NamedDataset, choose_dataset, read_dataset
from shardctl.order.plan_order import plan_order
from shardctl.saved import snapshot_file
from shardctl.saved.resume_plan import ListedPlan, PlanListing, ResumePlan
from shardctl.saved.snapshot import Snapshot, ref_as_pinned, spec_as_pinned
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, with_keywords
from shardctl.spec.reads import reads_of
from shardctl.stores.stores import read_file, working_folder
from shardctl.verbs.diff.answer import EXACT_LIMIT, Diff, PinnedOrder, settings_to_fall_back_on
from shardctl.verbs.diff.answer import diff as compare
from shardctl.verbs.diff.plans import PlansDiff, diff_plans
from shardctl.verbs.plan.answer import Plans
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot

_Snapshots = Snapshot | TakenSnapshot | PinnedOrder
_Plans = ResumePlan | Plans | PlanListing
_Path = str | os.PathLike[str]
_Opened = PinnedOrder | PlanListing


def _one_of(values: Any, needed: str, several: str) -> Kind:
    def given_as(given: object) -> object | None:
        return given if isinstance(given, values | str | os.PathLike) else None

    return made_kind(given_as, needed=f"the path of a snapshot or of {needed},", several=several)


Comparable = Annotated[
    _Snapshots | _Plans | _Path,
    _one_of(
        _Snapshots | _Plans,
        "a plan, or what snapshot, plan or resume returns",
        "snapshots and plans",
    ),
]
# Keywords alone change the settings of the snapshot, which is known later.
ChangedSettings = Annotated[
    ReadSettings | Mapping[str, object],
    replace(
        kind_of(SettingsLike),
        join=lambda given, *said: dict(said[0]) if given is None else with_keywords(given, *said),
    ),
]
ComparedReport = Annotated[
    _Snapshots | Report | _Path,
    _one_of(
        _Snapshots | Report,
        "a settings file, or what snapshot or report returns",
        "snapshots, settings files and reports",
    ),
]


@checked
def diff(
    expected: Comparable,
    actual: Comparable | None = None,
    *,
    dataset: DatasetLike | None = None,
    spec: str | None = None,
    settings: ChangedSettings | None = None,
    exact_limit: int = EXACT_LIMIT,
    **keywords: Unpack[OrderSettings],
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
        keywords: settings in which it is read otherwise than `settings`, or the snapshot, say.
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
    >>> shardctl.diff(before, block=8).equal, shardctl.diff(before, spec="test[1:]").first.actual
    (True, 1)
    """
    first, label = _opened(expected, "expected")
    if actual is None:
        if isinstance(first, PlanListing):
            raise UsageError("expected is a plan; give actual, another to compare it with")
        now = _now(first, expected, dataset, spec, settings)
        return compare(first, now, exact_limit=exact_limit)
    if not (dataset is None and spec is None and settings is None):
        raise UsageError(
            "dataset, spec and settings are about the order as it is now; leave them out, or actual"
        )
    second, other = _opened(actual, "actual")
    return diff_of(first, second, (label, other), exact_limit)


def diff_of(
    first: _Opened, second: _Opened, labels: tuple[str, str], exact_limit: int = EXACT_LIMIT
) -> Diff | PlansDiff:
    """Return where two orders, or two plans, differ; `labels` are what they are called."""
    if isinstance(first, PinnedOrder) and isinstance(second, PinnedOrder):
        return compare(first, second, exact_limit=exact_limit)
    if isinstance(first, PlanListing) and isinstance(second, PlanListing):
        return diff_plans(first, second, labels=labels)
    kinds = ["snapshot" if isinstance(one, PinnedOrder) else "plan" for one in (first, second)]
    raise UsageError(
        f"{quoted(labels[0], 200)} is a {kinds[0]} and {quoted(labels[1], 200)} a {kinds[1]}; two "
        "of one kind are compared"
    )


def _opened(given: Any, name: str) -> tuple[_Opened, str]:
    """Return what is compared of a side, and what it is called."""
    label = name
    if isinstance(given, str | os.PathLike):
        label = printable(os.fspath(given))
        given = snapshot_file.read_comparable(Path(given))
    if isinstance(given, _Snapshots):
        pinned = _pinned(given, label)
        return pinned, pinned.label
    if isinstance(given, ResumePlan):
        return snapshot_file.listing_of_plan(given), label
    return _listing(given) if isinstance(given, Plans) else given, label


def _pinned(given: Snapshot | TakenSnapshot | PinnedOrder, label: str) -> PinnedOrder:
    if isinstance(given, PinnedOrder):
        return given
    if isinstance(given, TakenSnapshot):
        return PinnedOrder(snapshot=given.snapshot, label=label, live=given.live)
    return PinnedOrder(snapshot=given, label=label)


def _listing(plans: Plans) -> PlanListing:
    listed = []
    for plan in plans.plans:
        host = "" if plan.host is None else f", host {plan.host.index} of {plan.host.count}"
        reads = reads_of(plans.dataset, plan.ranges)
        listed.append(ListedPlan(title=f"{printable(plan.spec)}{host}", reads=reads))
    return PlanListing(kind="plan", dataset=plans.dataset.identity, plans=tuple(listed))


def _now(
    pinned: PinnedOrder,
    given: object,
    dataset: DatasetLike | None,
    spec: str | None,
    settings: ChangedSettings | None,
) -> PinnedOrder:
    """Return the order as it is now; what is not said is as it was pinned."""
    kept = pinned.snapshot
    here = _named_by(pinned, given) if dataset is None else as_dataset(dataset)
    if not isinstance(settings, ReadSettings):
        # The pinned settings as far as they still have a meaning, and over them what the caller
        # says.
        pinned_settings = ReadSettings(**settings_to_fall_back_on(kept, here))
        settings = with_keywords(pinned_settings, settings or {})
    spec = spec_as_pinned(kept, settings) if spec is None else spec
    taken = snapshot(here, spec, settings)
    return PinnedOrder(snapshot=taken.snapshot, label="the current order", live=taken.live)


def _named_by(pinned: PinnedOrder, given: object) -> Dataset:
    # A snapshot taken in this program has its dataset at hand; one from a file names it.
    if pinned.live is not None:
        return pinned.live.dataset_as_given
    kept, folder = pinned.snapshot, working_folder()
    if isinstance(given, str | os.PathLike):
        # References in a file are relative to the file.
        folder /= Path(given).parent
    try:
        with said_about(pinned.label):
            return read_dataset(kept.refs or (ref_as_pinned(kept),), cwd=folder)
    except DatasetError as error:
        raise DatasetError(f"{error}; say where the dataset is with --dataset REF") from error


# Two pipelines side by side, of snapshots and settings files.


@checked
def compare_reports(
    a: ComparedReport,
    b: ComparedReport,
    *,
    dataset: DatasetLike | None = None,
    spec: str | None = None,
    watch: Watch | None = None,
) -> ReportComparison:
    """Return two pipelines side by side: where their orders differ, and how each is shuffled.

    A snapshot counts as it was pinned, and its dataset need not be there.

    Args:
        a: a snapshot or the settings file of a project: its path, or what `snapshot`,
            `read_snapshot` or `report` returned. It is the expected one.
        b: another one.
        dataset: what settings files read, in place of what they name; paths in a file are relative
            to it.
        spec: what settings files read; None is that of the snapshot beside them, else `train`.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        A ReportComparison: `equal`, `diff`, `settings`, and the `quality` of each side. What is
        not known is a `NotShown` with the reason.

    Raises:
        DatasetError: a file cannot be read or is broken, or a dataset is not there.
        UsageError: both are one file, a file is a plan, or settings are at fault.

    >>> import shardctl
    >>> before = shardctl.snapshot("mnist", "test", {"shuffle_seed": 1})
    >>> found = shardctl.compare_reports(before, shardctl.snapshot("mnist", "test", {"buffer": 9,
    ...     "buffer_seed": 2}))
    >>> found
    <ReportComparison a, b: they differ>
    >>> [setting.name for setting in found.settings if setting.differs]
    ['shuffle_files', 'shuffle_seed', 'reshuffle', 'buffer', 'buffer_seed', 'buffer_reshuffle']
    """
    refuse_one_file(a, b)
    given = [opened_report(one, name) for one, name in ((a, "a"), (b, "b"))]
    if not any(one.project for one in given) and (dataset is not None or spec is not None):
        raise UsageError("--dataset and --spec are about settings files; snapshots are as they are")

    def dataset_of(project: Project, fallback: NamedDataset | None) -> Dataset:
        if dataset is not None:
            return as_dataset(dataset)
        return choose_dataset((), project=project, fallback=fallback).dataset

    def settings_of(project: Project) -> ReadSettings:
        try:
            return ReadSettings(**stated_settings(project))
        except UsageError as error:
            raise located(error, project, "read") from None

    sides = sides_of(given, spec=spec, dataset_of=dataset_of, settings_of=settings_of)
    return compare_sides(*sides, watch=watch)


@dataclass(frozen=True, kw_only=True)
class Opened(Side):
    """A side of a comparison, and the project of a settings file, which is no side yet."""

    project: Project | None = None
    folder: Path = Path()


def refuse_one_file(a: object, b: object) -> None:
    """Refuse two names of one file, which would be equal whatever is in it.

    Raises:
        UsageError: they are one file.
    """
    if not (isinstance(a, str | os.PathLike) and isinstance(b, str | os.PathLike)):
        return
    try:
        # By device and inode, so that links and other spellings count as one.
        is_one = os.path.samefile(a, b)
    except (OSError, ValueError):
        return  # what is wrong with it is said where it is read
    if is_one:
        raise UsageError(
            f"{quoted(os.fspath(a), 200)} and {quoted(os.fspath(b), 200)} are one file; name "
            "another to set beside it"
        )


def opened_report(given: Any, name: str) -> Opened:
    """Return what is compared of a side; `name` is what it is called where it is no file.

    Raises:
        DatasetError: the file cannot be read, or is broken.
        UsageError: it is a plan.
    """
    if isinstance(given, _Snapshots):
        pinned = _pinned(given, name)
        return Opened(label=pinned.label, pinned=pinned)
    if isinstance(given, Report):
        of = given.question
        return Opened(label=name, dataset=of.dataset, spec=of.spec, settings=of.settings)
    path = Path(given)
    label = printable(os.fspath(given))
    data = read_file(path)  # once: what it holds and what kind it is are of one moment
    document = snapshot_file.parsed_file(data, source=label, wanted="settings file")
    # A file without a setting is no settings file: it may be a snapshot that was cut off.
    is_settings = any(value is not None for value in document.values())
    if not is_settings or {"kind", "format_version"} & document.keys():
        found = snapshot_file.comparable_of(document, source=label)
        if not isinstance(found, Snapshot):
            kind = "a plan to resume" if found.kind == "resume" else "a plan"
            raise UsageError(
                f"{quoted(label, 200)} is {kind}; snapshots and settings files are set side by "
                "side, and shardctl diff compares plans"
            )
        pinned = PinnedOrder(snapshot=found, label=label)
        return Opened(label=label, pinned=pinned, folder=path.parent)
    return Opened(label=label, project=project_of(data, path), folder=path.parent)


def sides_of(
    opened: Sequence[Opened],
    *,
    spec: str | None,
    dataset_of: Callable[[Project, NamedDataset | None], Dataset],
    settings_of: Callable[[Project], ReadSettings],
) -> list[Side]:
    """Return what was opened as sides; a settings file is read as the two functions say.

    One that names no dataset reads that of the snapshot beside it.

    Raises:
        ShardctlError: a dataset or settings at fault, with the file, and the line if it is known.
    """
    sides: list[Side] = []
    # Each side with the other beside it, from which it may take its dataset.
    for one, other in (opened, opened[::-1]):
        if one.project is None:
            sides.append(one)
            continue
        settings = settings_of(one.project)
        fallback, own = None, spec
        if other.pinned is not None:
            kept = other.pinned.snapshot
            refs = kept.refs or (ref_as_pinned(kept),)
            fallback = NamedDataset(refs=refs, folder=other.folder, said_by=other.label)
            own = spec_as_pinned(kept, settings) if spec is None else spec
        dataset = dataset_of(one.project, fallback)
        try:
            plan_order(dataset, own, settings)
        except UnpredictableOrderError:
            pass  # the rest of it is known
        except ShardctlError as error:
            found = located(error, one.project, "read")
            # Some errors name the file already, with the line.
            if printable(one.label) in str(found):
                raise found from None
            raise type(error)(f"{one.label}: {found}") from None
        sides.append(replace(one, dataset=dataset, spec=own, settings=settings))
    return sides
