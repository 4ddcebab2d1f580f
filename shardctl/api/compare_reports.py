"""Two pipelines side by side: snapshots and settings, given as values or as their files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from shardctl.api.settings_file import stated_settings
from shardctl.base.arguments import checked, made_kind
from shardctl.base.progress import Watch
from shardctl.base.text import printable, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.draw.setting_origins import located
from shardctl.errors import DatasetError, ShardctlError, UnpredictableOrderError, UsageError
from shardctl.files.json_text import is_json
from shardctl.metadata.project_file import Project, read_project
from shardctl.metadata.reference import Fallback, choose_dataset
from shardctl.order.plan_order import plan_order
from shardctl.saved.snapshot import Snapshot, ref_as_pinned, spec_as_pinned
from shardctl.saved.snapshot_file import parse_comparable
from shardctl.settings.read_settings import ReadSettings
from shardctl.stores.file_text import read_file, working_folder
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.snapshot.answer import TakenSnapshot

_Values = Snapshot | TakenSnapshot | PinnedOrder | Report


def _comparable(given: object) -> object | None:
    return given if isinstance(given, _Values | str | os.PathLike) else None


_KIND = made_kind(
    _comparable,
    needed="the path of a snapshot or of a settings file, or what snapshot or report returns,",
    several="snapshots, settings files and reports",
)
ComparedReport = Annotated[_Values | str | os.PathLike[str], _KIND]


@checked
def compare_reports(
    a: ComparedReport,
    b: ComparedReport,
    *,
    dataset: DatasetLike | None = None,
    spec: str | None = None,
    hosts: int | None = None,
    devices: int = 1,
    evaluated: str | None = None,
    watch: Watch | None = None,
) -> ReportComparison:
    """Return two pipelines side by side: where their orders part, and how each is shuffled.

    A snapshot counts as it was pinned, and its dataset need not be there.

    Args:
        a: a snapshot or the settings file of a project: its path, or what `snapshot`,
            `read_snapshot` or `report` returned. It is the expected one.
        b: another one.
        dataset: what settings files read, in place of what they name; paths in a file are relative
            to it.
        spec: what settings files read; None is that of the snapshot beside them, else `train`.
        hosts: how many hosts share the examples; None is what the settings say, else 8.
        devices: how many each host has, which share its batch in an evaluation.
        evaluated: what an evaluation reads; None is as of `evaluate`, of a snapshot none.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        A ReportComparison: `equal`, `diff`, `settings`, and of each side `quality`, `hosts` and
        `evaluation`. What cannot be told is a `NotShown` with the reason.

    Raises:
        DatasetError: a file cannot be read or is broken, or a dataset is not there.
        UsageError: both are one file, a file is a plan, settings are at fault, or a number is below
            1.

    >>> import shardctl
    >>> before = shardctl.snapshot("mnist", "test", {"shuffle_seed": 1})
    >>> found = shardctl.compare_reports(before, shardctl.snapshot("mnist", "test", {"buffer": 9,
    ...     "buffer_seed": 2}))
    >>> found
    <ReportComparison a, b: they part>
    >>> [setting.name for setting in found.settings if setting.differs]
    ['shuffle_files', 'shuffle_seed', 'reshuffle', 'buffer', 'buffer_seed', 'buffer_reshuffle']
    """
    refuse_one_file(a, b)
    given = [opened_report(one, name) for one, name in ((a, "a"), (b, "b"))]
    if not any(one.project for one in given) and (dataset is not None or spec is not None):
        raise UsageError("--dataset and --spec are about settings files; snapshots are as they are")

    def dataset_of(project: Project, fallback: Fallback | None) -> Dataset:
        if dataset is not None:
            return as_dataset(dataset)
        return choose_dataset(
            (),
            project=project,
            data_dir=None,
            env=os.environ,
            cwd=working_folder(),
            fallback=fallback,
        ).dataset

    return compare_sides(
        *sides_of(given, spec=spec, dataset_of=dataset_of, settings_of=_settings_of),
        hosts=hosts,
        devices=devices,
        evaluated=evaluated,
        watch=watch,
    )


def _settings_of(project: Project) -> ReadSettings:
    try:
        return ReadSettings(**stated_settings(project))
    except UsageError as error:
        raise located(error, project, "read") from None


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
        is_one = os.path.samefile(a, b)
    except (OSError, ValueError):
        return  # what is wrong with it is said where it is read
    if is_one:
        raise UsageError(
            f"{quoted(os.fspath(a), 200)} and {quoted(os.fspath(b), 200)} are one file; name "
            "another to set beside it"
        )


# A document of ours begins with these; no key of a settings file is called so.
_OF_DOCUMENTS = re.compile(rb"^(?:\xef\xbb\xbf)?\{?[\"']?(?:kind|format_version)[\"']?\s*:", re.M)
_OF_JSON = re.compile(rb'"(?:kind|format_version)"\s*:')


def opened_report(given: Any, name: str) -> Opened:
    """Return what is compared of a side; `name` is what it is called where it is no file.

    Raises:
        DatasetError: the file cannot be read, or is broken.
        UsageError: it is a plan.
    """
    if isinstance(given, PinnedOrder):
        return Opened(label=given.label, pinned=given)
    if isinstance(given, Report):
        asked = given.question
        return Opened(label=name, dataset=asked.dataset, spec=asked.spec, settings=asked.settings)
    if isinstance(given, Snapshot | TakenSnapshot):
        kept, live = (given, None) if isinstance(given, Snapshot) else (given.snapshot, given.live)
        return Opened(label=name, pinned=PinnedOrder(snapshot=kept, label=name, live=live))
    path = Path(given)
    label = printable(os.fspath(given))
    data = read_file(path)
    if not data.strip():
        raise DatasetError(f"{label} is empty; it should hold a snapshot or settings")
    if (_OF_JSON if is_json(data) else _OF_DOCUMENTS).search(data):
        found = parse_comparable(data, source=label)
        if not isinstance(found, Snapshot):
            kind = "a plan to resume" if found.kind == "resume" else "a plan"
            raise UsageError(
                f"{quoted(label, 200)} is {kind}; snapshots and settings files are set side by "
                "side, and shardctl diff compares plans"
            )
        pinned = PinnedOrder(snapshot=found, label=label)
        return Opened(label=label, pinned=pinned, folder=path.parent)
    return Opened(label=label, project=read_project(path), folder=path.parent)


def sides_of(
    opened: Sequence[Opened],
    *,
    spec: str | None,
    dataset_of: Callable[[Project, Fallback | None], Dataset],
    settings_of: Callable[[Project], ReadSettings],
) -> list[Side]:
    """Return what was opened as sides; a settings file is read as the two functions say.

    One that names no dataset reads that of the snapshot beside it.

    Raises:
        ShardctlError: a dataset or settings at fault, with the file, and the line if it is known.
    """
    sides: list[Side] = []
    for one, other in (opened, opened[::-1]):
        if one.project is None:
            sides.append(one)
            continue
        settings = settings_of(one.project)
        fallback, own = None, spec
        if other.pinned is not None:
            kept = other.pinned.snapshot
            refs = kept.refs or (ref_as_pinned(kept),)
            fallback = Fallback(refs=refs, folder=other.folder, said_by=other.label)
            own = spec_as_pinned(kept, settings) if spec is None else spec
        dataset = dataset_of(one.project, fallback)
        _refuse_misfits(one.label, one.project, dataset, own, settings)
        sides.append(replace(one, dataset=dataset, spec=own, settings=settings))
    return sides


def _refuse_misfits(
    label: str, project: Project, dataset: Dataset, spec: str | None, settings: ReadSettings
) -> None:
    """Refuse what a dataset does not take, in the words of the file that says so."""
    try:
        plan_order(dataset, spec, settings)
    except UnpredictableOrderError:
        return  # of which the rest can be told
    except ShardctlError as error:
        found = located(error, project, "read")
        if printable(label) in str(found):
            raise found from None
        raise type(error)(f"{label}: {found}") from None
