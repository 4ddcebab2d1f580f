"""What the files of a dataset hold, and what is wrong with them: as text, document and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shardctl.core.columns import Records, picked, records_of
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.file_finding import FileFinding
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.readers.verifying.verify_files import FilesVerification
from shardctl.rendering.text.tables import Screen, cells_of, columns, paragraph, paragraphs, table

_MAX_FILES = 20  # files that a table names on a terminal
_SPLITS = columns("<name=split num_examples=examples num_records=records num_files=files")
_SPLITS += columns("num_files_read=read_whole ~num_bytes=bytes ~num_bytes_read=bytes_read")
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
    yield table(_SPLITS, cells_of(_SPLITS, found.splits), screen)
    for way, count in found.checked.items():
        yield paragraph(f"{counted(count, 'file')} checked {_CHECKED[way]}", screen)
    if found.findings:
        yield paragraph(f"{counted(len(found.findings), 'problem')}:", screen, style="error")
        yield files_table(dataset, found.findings, screen)
    else:
        yield paragraph(f"every file holds {what_is_told(dataset)}", screen)
    yield from paragraphs(screen, *(f"note: {note}" for note in found.notes))


def files_table(dataset: Dataset, findings: Sequence[FileFinding], screen: Screen) -> str:
    """Return a table of files that do not hold what they should."""
    told = "counted" if dataset.is_counted else "metadata"
    found = columns(f"!*filename=file expected={told} found=file_holds <reason=problem")
    return table(found, cells_of(found, findings), screen, keep=_MAX_FILES)


def what_is_told(dataset: Dataset) -> str:
    """Return what files should hold, in words: no metadata tells it of files that were counted."""
    return "what was counted" if dataset.is_counted else "what the metadata says"


def verify_files_document(found: FilesVerification) -> Document:
    """Return the answer as a document; `files` are those with a problem."""
    return {
        **head("verify", found.dataset.identity),
        **picked(found, "equal num_files"),
        "splits": [asdict(split) for split in found.splits],
        "checked": dict(found.checked),
        "files": [asdict(finding) for finding in found.findings],
        "notes": list(found.notes),
    }


def verify_files_rows(found: FilesVerification) -> Records:
    """Return the record of each problem."""
    fields = "split filename kind expected found record byte reason"
    return records_of(fields, found.findings)
