"""Several snapshots, each beside the order of today: as text, as a document, as annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import kind_head
from shardctl.planning.diff.diff import Diff
from shardctl.rendering.diff.diff import Hints, diff_annotation, diff_document, diff_table
from shardctl.rendering.text.tables import Screen, annotation, paragraph


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
    said = [f"{len(files) - len(differ) - failed} of {counted(len(files), 'file')} the same"]
    said += [f"{len(differ)} changed"] if differ else []
    said += [f"{failed} not checked"] if failed else []
    return ", ".join(said)


def several_document(files: Sequence[CheckedFile]) -> Document:
    """Return the documents that `diff` has for each file alone, and what could not be checked."""
    compared = [file.diff for file in files if file.diff is not None]
    return {
        **kind_head("diff"),
        "equal": len(compared) == len(files) and all(diff.equal for diff in compared),
        "comparisons": [diff_document(diff) for diff in compared],
        "not_checked": [
            {"file": file.label, "error": file.error} for file in files if file.diff is None
        ],
    }


def several_annotation(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield an annotation for each file whose order differs, or that could not be checked."""
    for file in files:
        if file.diff is None:
            title = f"{file.label} was not checked"
            yield annotation("error", file.why, title=title, file=file.hints.file or file.label)
        else:
            yield from diff_annotation(file.diff, hints=file.hints)
