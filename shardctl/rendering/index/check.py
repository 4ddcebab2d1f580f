"""What has become of the files of a layout: as a table for people, a document and CSV rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.readers.index.check import FileChange, IndexCheck
from shardctl.rendering.text.tables import Cell, Column, Screen, paragraph, table

CSV_HEADER = (
    "kind",
    "split",
    "path",
    "then",
    "now",
    "bytes_then",
    "bytes_now",
    "reason",
)

_MAX_FILES = 20  # files that a table names on a terminal
_COLUMNS = (
    Column(heading="change", align="left"),
    Column(heading="file", align="left", names_files=True),
    Column(heading="examples"),
    Column(heading="now"),
    Column(heading="bytes"),
    Column(heading="now"),
    Column(heading="problem", align="left"),
)


def check_table(check: IndexCheck, screen: Screen) -> Iterator[str]:
    """Yield each file that changed, and how many of which kind."""
    where = check.dataset.data_dir or check.dataset.origin
    yield paragraph(f"{check.dataset.title}: {where}", screen, style="bold")
    if check.changes:
        reasons = any(change.reason for change in check.changes)
        columns = _COLUMNS if reasons else _COLUMNS[:-1]
        rows = [_row(change)[: len(columns)] for change in check.changes]
        yield table(columns, rows, screen, keep=_MAX_FILES)
        kinds = Counter(change.kind for change in check.changes)
        said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield paragraph(f"of {counted(check.num_files, 'file')}: {said}", screen)
    else:
        files = counted(check.num_files, "file")
        yield paragraph(f"{files}: all as {check.layout} says", screen)
    if check.num_touched:
        files = counted(check.num_touched, "file")
        yield paragraph(f"{files} written again, with as many bytes and examples", screen)
    if check.changes:
        path = shlex.quote(check.layout)
        yield paragraph(f"next: shardctl index PATH.. -o {path} counts what changed", screen)


def _row(change: FileChange) -> Sequence[str]:
    return (
        Cell(change.kind, "error"),
        change.path,
        _count(change.then),
        _count(change.now),
        _count(change.bytes_then),
        _count(change.bytes_now),
        change.reason or "",
    )


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def check_document(check: IndexCheck) -> Document:
    """Return the answer as a document."""
    return {
        **head("index", check.dataset.identity),
        "check": check.layout,
        "equal": check.equal,
        "num_files": check.num_files,
        "num_touched": check.num_touched,
        "changes": [asdict(change) for change in check.changes],
    }


def check_rows(check: IndexCheck) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each change."""
    for change in check.changes:
        yield tuple(getattr(change, field) for field in CSV_HEADER)
