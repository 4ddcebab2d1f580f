"""What the files of an order really hold, counted beside what the metadata says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.instructions.reads import Reads
from shardctl.core.text import printable
from shardctl.errors import MissingDependencyError
from shardctl.planning.progress import Progress, Watch
from shardctl.planning.verify import FileMismatch
from shardctl.readers.record_counts import (
    COUNTED_FORMATS,
    RecordCount,
    count_records,
    count_tfrecords,
)
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.verifying.real_files import exists, file_path, first_file_here


@dataclass(frozen=True, kw_only=True)
class FileCounts:
    """How many files were counted, those that hold another number, and what was not counted."""

    num_files: int
    mismatches: tuple[FileMismatch, ...] = ()
    notes: tuple[str, ...] = ()


def count_files(reads: Reads, watch: Watch | None = None) -> FileCounts:
    """Count the examples in every file that the rows read, whole files.

    Nothing is counted where none of the files is here, or nothing here reads their format; a note
    says the latter.
    """
    dataset = reads.dataset
    if first_file_here(reads) is None:
        return FileCounts(num_files=0)
    if dataset.file_format not in COUNTED_FORMATS:
        note = f"the examples in {printable(dataset.file_format)} files are not counted"
        return FileCounts(num_files=0, notes=(note,))
    places = np.unique(np.stack([reads.split, reads.shard]), axis=1).T.tolist()
    progress = Progress(watch, "files", len(places))
    mismatches = []
    for split, shard in places:
        expected = dataset.splits[split].shard_lengths[shard]
        path = file_path(dataset, split, shard)
        try:
            count = _count(path, dataset.file_format)
        except MissingDependencyError as error:
            return FileCounts(num_files=0, notes=(f"the files are not counted: {error}",))
        progress.advance(1)
        if count is not None and (count.num_records != expected or count.problem is not None):
            mismatches.append(
                FileMismatch(
                    filename=dataset.splits[split].filename(shard),
                    expected=expected,
                    found=count.num_records,
                    reason=count.problem,
                )
            )
    return FileCounts(num_files=len(places), mismatches=tuple(mismatches))


def _count(path: str | None, file_format: str) -> RecordCount | None:
    if path is None:
        return RecordCount(num_records=None, problem="missing")
    if "://" not in path:
        return count_records(path, file_format)
    if not exists(path):
        return RecordCount(num_records=None, problem="missing")
    if file_format != "tfrecord":
        return None  # their libraries read local files alone
    with tensorflow().io.gfile.GFile(path, "rb") as file:
        return count_tfrecords(file)
