"""Where two plans differ: as text, as a document, as an annotation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardctl.core.columns import picked
from shardctl.core.instructions.reads import Reads
from shardctl.core.on_demand import OnDemand
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head, kind_head
from shardctl.planning.diff.diff import Diff
from shardctl.planning.diff.plans import PlansDiff, Range
from shardctl.rendering.diff.diff import (
    Hints,
    cause_line,
    cause_record,
    diff_annotation,
    diff_document,
    diff_table,
)
from shardctl.rendering.text.tables import Screen, annotation, columns, paragraph, table_pieces

_ROWS = 20  # files on a terminal, and in an annotation
_RANGES = 3  # ranges of a file there
_COLUMNS = columns("*file <expected <actual")


def plans_table(diff: PlansDiff, screen: Screen) -> Iterator[str]:
    """Yield where the first file instruction differs, then every file that is read differently."""
    yield paragraph(plans_headline(diff), screen, style="bold")
    first = diff.first
    if first is not None:
        plan = f" of {first.plan}" if first.plan else ""
        yield paragraph(f"file instruction {first.position:,}{plan}:", screen)
        yield paragraph(f"  expected {_read(first.expected)}", screen, style="error")
        yield paragraph(f"  actual   {_read(first.actual)}", screen, style="error")
    if diff.only_order:
        yield paragraph("the same ranges of the same files, in another order", screen)
    if diff.files:
        yield "\n"
        yield paragraph(f"{counted(len(diff.files), 'file')} read differently:", screen)
        most = _RANGES if screen.abridged else None
        rows = OnDemand(len(diff.files), diff.files.__getitem__).map(
            lambda f: (f.filename, _ranges(f.expected, most), _ranges(f.actual, most))
        )
        yield from table_pieces(_COLUMNS, rows, screen, keep=_ROWS)
    for cause in diff.changes:
        lead = "without effect on the reads: " if diff.equal else ""
        yield paragraph(f"{lead}{cause_line(cause, whole=not screen.abridged)}", screen)


def plans_headline(diff: PlansDiff) -> str:
    """Return the sentence that says whether two plans read the same."""
    verb = "read the same" if diff.equal else "do not read the same"
    return f"{diff.labels[0]} and {diff.labels[1]} {verb}"


def _read(read: Reads | None) -> str:
    record = _record(read)
    if record is None:
        return "none: the plan has ended"
    return "{filename} of {split}, skip {skip:,}, take {take:,}".format_map(record)


def _ranges(ranges: Sequence[Range], most: int | None) -> str:
    if not ranges:
        return "not read"
    shown = [f"{start:,} to {stop - 1:,}" if stop > start else "nothing" for start, stop in ranges]
    rest = f" and {len(shown) - most} more" if most is not None and len(shown) > most else ""
    return "; ".join(shown[:most]) + rest


def plans_document(diff: PlansDiff) -> Document:
    """Return the document of `diff` for two plans; positions count file instructions."""
    first = diff.first
    causes = [cause_record(cause) for cause in diff.changes]
    return {
        **head("diff", diff.expected.dataset),
        "expected": diff.labels[0],
        "actual": diff.labels[1],
        "equal": diff.equal,
        "first_difference": None
        if first is None
        else {
            **picked(first, "position"),
            "expected": _record(first.expected),
            "actual": _record(first.actual),
            "plan": first.plan,
        },
        "causes": [] if diff.equal else causes,
        "without_effect": causes if diff.equal else [],
        "files": [picked(file, "plan split filename expected actual") for file in diff.files],
    }


def _record(read: Reads | None) -> Document | None:
    """Return the fields of the one instruction in `read`."""
    return None if read is None else read.records(["filename", "split", "skip", "take"])[0]


def plans_annotation(diff: PlansDiff, *, file: str | None = None) -> Iterator[str]:
    """Yield an annotation of the expected file where the plans differ, none where they do not."""
    if not diff.equal:
        text = "".join(plans_table(diff, Screen(abridged=True))).partition("\n")[2].strip("\n")
        yield annotation("error", text, title=plans_headline(diff), file=file or diff.labels[0])


# Several snapshots at once: a table, a document and annotations.


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """A snapshot beside the order of today; or `error`, why it could not be checked."""

    label: str
    hints: Hints
    diff: Diff | None = None
    error: str = ""

    @property
    def why(self) -> str:
        """The error behind the name of the file."""
        return self.error.removeprefix(f"{self.label}: ")


def several_table(files: Sequence[CheckedFile], screen: Screen) -> Iterator[str]:
    """Yield a line for each file whose order is the same, a section for each other one."""
    before_is_line = True
    for file in files:
        is_line = file.diff is None or file.diff.equal
        if not (is_line and before_is_line):
            yield "" if file is files[0] else "\n"
        before_is_line = is_line
        if file.diff is None:
            yield paragraph(f"{file.label} was not checked: {file.why}", screen)
        else:
            hints = replace(file.hints, update=None)  # it is said once, below
            yield from diff_table(file.diff, screen, hints=hints)
    differ = [file for file in files if file.diff is not None and not file.diff.equal]
    if len(files) > 1:
        yield "" if before_is_line else "\n"
        yield paragraph(_summary(files, differ), screen, style="bold")
    if any(file.hints.update for file in differ):
        which = "it" if len(differ) == 1 else "them all"
        advice = f"if this is meant, the same command with --update accepts {which}"
        if len(differ) > 1:
            advice += f", and one alone: {differ[0].hints.update}"
        yield paragraph(advice, screen)


def _summary(files: Sequence[CheckedFile], differ: Sequence[CheckedFile]) -> str:
    failed = sum(file.diff is None for file in files)
    said = f"{len(files) - len(differ) - failed} of {counted(len(files), 'file')} the same"
    said += f", {len(differ)} changed" if differ else ""
    return said + (f", {failed} not checked" if failed else "")


def several_document(files: Sequence[CheckedFile]) -> Document:
    """Return the documents that `diff` has for each file alone, and what could not be checked."""
    compared = [file.diff for file in files if file.diff is not None]
    return {
        **kind_head("diff"),
        "equal": len(compared) == len(files) and all(diff.equal for diff in compared),
        "comparisons": [diff_document(diff) for diff in compared],
        "not_checked": [picked(file, "file=label error") for file in files if file.diff is None],
    }


def several_annotation(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield an annotation for each file whose order differs, or that could not be checked."""
    for file in files:
        if file.diff is None:
            title = f"{file.label} was not checked"
            yield annotation("error", file.why, title=title, file=file.hints.file or file.label)
        else:
            yield from diff_annotation(file.diff, hints=file.hints)
