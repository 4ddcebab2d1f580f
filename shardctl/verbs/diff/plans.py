"""Where do two plans differ: which files, and which ranges of them, are read otherwise?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat, zip_longest

from shardctl.base.columns import Answer
from shardctl.base.text import counted, in_short, quoted
from shardctl.errors import UsageError
from shardctl.saved.resume_plan import ListedPlan, PlanListing
from shardctl.spec.reads import Reads
from shardctl.verbs.diff.causes import Cause, dataset_causes, pipeline_causes

Range = tuple[int, int]
# Split, base name and, where a split has two files of one name, the index of the file in it.
File = tuple[str, str, int | None]
_PIECE = 1 << 16  # instructions made into Python values at once


@dataclass(frozen=True, kw_only=True)
class FirstRead:
    """The first file instruction that differs, counted from 0 in its plan; None past the end."""

    plan: str
    position: int
    expected: Reads | None
    actual: Reads | None


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file of which other examples are read: ranges [start, stop) in the file, in turn."""

    plan: str
    split: str
    filename: str
    expected: tuple[Range, ...]
    actual: tuple[Range, ...]


@dataclass(frozen=True, kw_only=True)
class PlansDiff(Answer):
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

    def __repr__(self) -> str:
        found = "equal" if self.equal else f"{counted(len(self.files), 'file')} read differently"
        return in_short(self, ", ".join(self.labels), found)


def diff_plans(expected: PlanListing, actual: PlanListing, *, labels: tuple[str, str]) -> PlansDiff:
    """Return where two files of plans differ; plans are matched by their place in the file.

    Raises:
        UsageError: plans of two kinds.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.dataset.shard_files import ShardFiles
    >>> from shardctl.spec.reads import reads_of
    >>> from shardctl.spec.subsplit import SplitRange
    >>> files = ShardFiles(pattern="d-\\0", num_shards=1)
    >>> train = Split(name="train", shard_lengths=(5,), files=(files,))
    >>> toy = Dataset(name="toy", splits=(train,))
    >>> one, other = (
    ...     ListedPlan(title="train", reads=reads_of(
    ...         toy, [SplitRange(split=train, start=start, stop=5)]))
    ...     for start in (0, 2))
    >>> found = diff_plans(
    ...     PlanListing(kind="plan", dataset=toy.identity, plans=(one,)),
    ...     PlanListing(kind="plan", dataset=toy.identity, plans=(other,)), labels=("a", "b"))
    >>> found.equal, found.first.position, found.files[0].expected, found.files[0].actual
    (False, 0, ((0, 5),), ((2, 5),))
    """
    if expected.kind != actual.kind:
        raise UsageError(
            f"{quoted(labels[0])} is a {expected.kind} and {quoted(labels[1])} a {actual.kind}; "
            "files of one kind are compared"
        )
    # Plans are matched by position; a missing one is None.
    pairs = list(zip_longest(expected.plans, actual.plans, fillvalue=None))
    found = [(pair, first) for pair in pairs if (first := _first(*pair)) is not None]
    return PlansDiff(
        expected=expected,
        actual=actual,
        labels=labels,
        first=found[0][1] if found else None,
        files=tuple(change for pair, _ in found for change in _files(*pair)),
        changes=tuple(_changes(expected, actual)),
    )


def _first(expected: ListedPlan | None, actual: ListedPlan | None) -> FirstRead | None:
    pairs = enumerate(zip_longest(_rows(expected), _rows(actual)))
    position = next((place for place, (one, other) in pairs if one != other), None)
    if position is None:
        return None
    old, new = _at(expected, position), _at(actual, position)
    title = _title(expected, actual)
    return FirstRead(plan=title, position=position, expected=old, actual=new)


def _rows(plan: ListedPlan | None) -> Iterator[tuple[File, int, int]]:
    """Yield the file, skip and take of each instruction.

    The shard is named too where a split has two files of one name.
    """
    if plan is None:
        return
    reads, shards = plan.reads, plan.reads.shard_index if plan.reads.names_repeat else None
    for start in range(0, len(reads), _PIECE):
        piece = reads.select(slice(start, start + _PIECE))
        splits = map(reads.split_names.__getitem__, piece.split.tolist())
        own = repeat(None, len(piece)) if shards is None else shards[start:][: len(piece)].tolist()
        files = zip(splits, piece.filenames(), own, strict=True)
        yield from zip(files, piece.skip.tolist(), piece.take.tolist(), strict=True)


def _at(plan: ListedPlan | None, position: int) -> Reads | None:
    if plan is None or position >= len(plan.reads):
        return None
    return plan.reads.select(slice(position, position + 1))


def _title(*sides: ListedPlan | None) -> str:
    return next((plan.title for plan in sides if plan is not None), "")


def _files(expected: ListedPlan | None, actual: ListedPlan | None) -> Iterator[ChangedFile]:
    before, after = _ranges(expected), _ranges(actual)
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key, []), after.get(key, [])
        # Sorted: the same ranges in another order are no change of the file.
        if sorted(old) != sorted(new):
            named = {"plan": _title(expected, actual), "split": key[0], "filename": key[1]}
            yield ChangedFile(**named, expected=tuple(old), actual=tuple(new))


def _ranges(plan: ListedPlan | None) -> dict[File, list[Range]]:
    ranges: dict[File, list[Range]] = {}
    for file, skip, take in _rows(plan):
        ranges.setdefault(file, []).append((skip, skip + take))
    return ranges


def _changes(expected: PlanListing, actual: PlanListing) -> Iterator[Cause]:
    yield from pipeline_causes(expected.pipeline, actual.pipeline)
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
    left_out = ("data_dir", "ordered", "splits")
    yield from dataset_causes(expected.dataset, actual.dataset, leaving_out=left_out)
