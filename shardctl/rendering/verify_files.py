"""What the files of a dataset hold, and what is wrong with them: as text, document and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.file_finding import FileFinding
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.readers.verifying.verify_files import FilesVerification, SplitFiles
from shardctl.rendering.text.quantities import human_bytes
from shardctl.rendering.text.tables import Cell, Column, Screen, paragraph, table

CSV_HEADER = ("split", "filename", "kind", "expected", "found", "record", "byte", "reason")

_MAX_FILES = 20  # files that a table names on a terminal
_SPLITS = (
    Column(heading="split", align="left"),
    Column(heading="examples"),
    Column(heading="records"),
    Column(heading="files"),
    Column(heading="read whole"),
    Column(heading="bytes"),
    Column(heading="bytes read"),
)
_CHECKED = {
    "checksums": "by the checksums of all their records",
    "decoded": "by decoding all their rows",
    "framing": "by their framing alone",
}


def verify_files_table(found: FilesVerification, screen: Screen) -> Iterator[str]:
    """Yield what was read of each split, how it was checked, and the files that are damaged."""
    dataset = found.dataset
    where = dataset.data_dir or dataset.origin
    yield paragraph(f"{dataset.title}: {dataset.file_format}, {where}", screen, style="bold")
    yield table(_SPLITS, [_split(split) for split in found.splits], screen)
    for way, count in found.checked.items():
        yield paragraph(f"{counted(count, 'file')} checked {_CHECKED[way]}", screen)
    if found.findings:
        yield paragraph(f"{counted(len(found.findings), 'problem')}:", screen, style="error")
        rows = list(map(_finding, found.findings))
        yield table(file_columns(dataset), rows, screen, keep=_MAX_FILES)
    else:
        yield paragraph(f"every file holds {what_is_told(dataset)}", screen)
    for note in found.notes:
        yield paragraph(f"note: {note}", screen)


def file_columns(dataset: Dataset) -> tuple[Column, ...]:
    """Return the columns of files that do not hold what they should."""
    return (
        Column(heading="file", align="left", names_files=True),
        Column(heading="counted" if dataset.is_counted else "metadata"),
        Column(heading="file holds"),
        Column(heading="problem", align="left"),
    )


def what_is_told(dataset: Dataset) -> str:
    """Return what files should hold, in words: no metadata tells it of files that were counted."""
    return "what was counted" if dataset.is_counted else "what the metadata says"


def _split(split: SplitFiles) -> Sequence[str]:
    return (
        split.name,
        f"{split.num_examples:,}",
        f"{split.num_records:,}",
        f"{split.num_files:,}",
        f"{split.num_files_read:,}",
        human_bytes(split.num_bytes),
        human_bytes(split.num_bytes_read),
    )


def _finding(finding: FileFinding) -> Sequence[str]:
    return (
        Cell(finding.filename, "error"),
        "-" if finding.expected is None else f"{finding.expected:,}",
        "-" if finding.found is None else f"{finding.found:,}",
        finding.reason or "",
    )


def verify_files_document(found: FilesVerification) -> Document:
    """Return the answer as a document; `files` are those with a problem."""
    return {
        **head("verify", found.dataset.identity),
        "equal": found.equal,
        "num_files": found.num_files,
        "splits": [asdict(split) for split in found.splits],
        "checked": dict(found.checked),
        "files": [asdict(finding) for finding in found.findings],
        "notes": list(found.notes),
    }


def verify_files_rows(found: FilesVerification) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each problem."""
    for finding in found.findings:
        yield tuple(getattr(finding, field) for field in CSV_HEADER)
