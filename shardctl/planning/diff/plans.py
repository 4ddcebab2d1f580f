"""Where do two plans part: which files, and which ranges of them, are read otherwise?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from shardctl.core.resume.plan_listing import ListedPlan, ListedRead, PlanListing
from shardctl.core.text import quoted
from shardctl.errors import UsageError
from shardctl.planning.diff.causes import Cause, dataset_causes, setting_causes

Range = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class FirstRead:
    """The first file instruction that differs, counted from 0 in its plan; None past the end."""

    plan: str
    position: int
    expected: ListedRead | None
    actual: ListedRead | None


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file of which other examples are read: ranges [start, stop) in the file, in turn."""

    plan: str
    split: str
    filename: str
    expected: tuple[Range, ...]
    actual: tuple[Range, ...]


@dataclass(frozen=True, kw_only=True)
class PlansDiff:
    """The answer: `changes` is what else differs, also where the same is read."""

    expected: PlanListing
    actual: PlanListing
    labels: tuple[str, str]
    first: FirstRead | None
    files: tuple[ChangedFile, ...]
    changes: tuple[Cause, ...]

    @property
    def equal(self) -> bool:
        """Whether the same stretches of the same files are read in the same order and way."""
        return self.first is None and not any(c.kind != "dataset" for c in self.changes)

    @property
    def only_order(self) -> bool:
        """Whether the same ranges of the same files are read, in another order."""
        return self.first is not None and not self.files


def diff_plans(expected: PlanListing, actual: PlanListing, *, labels: tuple[str, str]) -> PlansDiff:
    """Return where two files of plans part; plans are matched by their place in the file.

    Raises:
        UsageError: plans of two kinds.

    >>> one = ListedPlan(title="train", reads=(ListedRead("train", "d-0", 0, 5),))
    >>> other = ListedPlan(title="train", reads=(ListedRead("train", "d-0", 2, 3),))
    >>> from shardctl.core.dataset.identity import DatasetHead
    >>> toy = DatasetHead(name="toy", config=None, version=None, file_format="tfrecord",
    ...                   data_dir=None, fingerprint="a")
    >>> found = diff_plans(
    ...     PlanListing(kind="plan", dataset=toy, plans=(one,)),
    ...     PlanListing(kind="plan", dataset=toy, plans=(other,)), labels=("a", "b"))
    >>> found.equal, found.first.position, found.files[0].expected, found.files[0].actual
    (False, 0, ((0, 5),), ((2, 5),))
    """
    if expected.kind != actual.kind:
        raise UsageError(
            f"{quoted(labels[0])} is a {expected.kind} and {quoted(labels[1])} a {actual.kind}; "
            "files of one kind are compared"
        )
    pairs = list(zip_longest(expected.plans, actual.plans, fillvalue=None))
    firsts = (_first(*pair) for pair in pairs)
    return PlansDiff(
        expected=expected,
        actual=actual,
        labels=labels,
        first=next((first for first in firsts if first is not None), None),
        files=tuple(change for pair in pairs for change in _files(*pair)),
        changes=tuple(_changes(expected, actual)),
    )


def _first(expected: ListedPlan | None, actual: ListedPlan | None) -> FirstRead | None:
    for position, (old, new) in enumerate(zip_longest(_reads(expected), _reads(actual))):
        if old != new:
            title = _title(expected, actual)
            return FirstRead(plan=title, position=position, expected=old, actual=new)
    return None


def _reads(plan: ListedPlan | None) -> tuple[ListedRead, ...]:
    return () if plan is None else plan.reads


def _title(expected: ListedPlan | None, actual: ListedPlan | None) -> str:
    plan = expected if expected is not None else actual
    return "" if plan is None else plan.title


def _files(expected: ListedPlan | None, actual: ListedPlan | None) -> Iterator[ChangedFile]:
    before, after = _ranges(expected), _ranges(actual)
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key, []), after.get(key, [])
        if sorted(old) != sorted(new):
            yield ChangedFile(
                plan=_title(expected, actual),
                split=key[0],
                filename=key[1],
                expected=tuple(old),
                actual=tuple(new),
            )


def _ranges(plan: ListedPlan | None) -> dict[tuple[str, str, int | None], list[Range]]:
    ranges: dict[tuple[str, str, int | None], list[Range]] = {}
    for read in _reads(plan):
        key = (read.split, read.filename, read.shard_index)
        ranges.setdefault(key, []).append((read.skip, read.skip + read.take))
    return ranges


def _changes(expected: PlanListing, actual: PlanListing) -> Iterator[Cause]:
    yield from setting_causes(expected.pipeline, actual.pipeline)
    for name in dict.fromkeys((*expected.state, *actual.state)):
        then, now = expected.state.get(name), actual.state.get(name)
        if then != now:
            yield Cause(kind="state", name=name, expected=then, actual=now)
    titles = zip_longest(expected.plans, actual.plans, fillvalue=None)
    for number, (old, new) in enumerate(titles):
        before, after = (None if plan is None else plan.title for plan in (old, new))
        if before != after:
            yield Cause(kind="plan", name=f"plan {number}", expected=before, actual=after)
    # Whether the files are ordered is among the state; where they lie changes no reading.
    yield from dataset_causes(
        expected.dataset, actual.dataset, apart_from=("data_dir", "ordered", "splits")
    )
