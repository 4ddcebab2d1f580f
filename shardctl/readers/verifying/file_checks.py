"""The contents of the files of an order, checked before a library opens the first of them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.file_finding import DEADLY, FileFinding
from shardctl.core.instructions.reads import Reads
from shardctl.core.progress import Progress, Watch
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import MissingDependencyError
from shardctl.files.stores.anywhere import answers, is_file
from shardctl.files.stores.remote_path import RemotePath, file_in, path_of
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import is_remote
from shardctl.readers.files_on_disk import none_here
from shardctl.readers.index.counting.local_runner import LocalRunner
from shardctl.readers.index.runner import FileToCount, Runner
from shardctl.readers.records.contents import Damage, FileContents
from shardctl.readers.records.read_file import why_not_read


@dataclass(frozen=True, kw_only=True)
class FileChecks:
    """How many files were checked, what is wrong with which, and what was not checked."""

    num_files: int
    findings: tuple[FileFinding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def deadly(self) -> str | None:
        """Why TensorFlow must not open the files: its reader would hang or die at one of them."""
        for finding in self.findings:
            if finding.kind in DEADLY:
                return (
                    f"TensorFlow does not open the files, since it would hang or die at "
                    f"{quoted(finding.filename)}"
                )
        return None


def check_files_read(reads: Reads, watch: Watch | None = None) -> FileChecks:
    """Count and check every example in the files that rows read, whole files.

    Where none of the files is here, they are missing if metadata lies in their folder, which says
    that it holds them; a layout or a catalog entry says no such thing, and nothing is checked.
    Neither is what nothing here reads, as a note then says.
    """
    dataset = reads.dataset
    if first_file_here(reads) is None:
        return _none_here(reads)
    reason = why_not_read(dataset.file_format)
    if reason is not None:
        return FileChecks(num_files=0, notes=(reason,))
    places = _places(reads)
    progress = Progress(watch, "files", len(places))
    found: dict[tuple[int, int], FileFinding] = {}
    try:
        for file, contents in _read(dataset, places, watch):
            progress.advance(1)
            split = dataset.splits[file.split]
            expected, filename = split.shard_lengths[file.shard], split.filename(file.shard)
            finding = contents.finding(filename, expected, split.name, dataset.compression)
            if finding is not None:
                found[file.split, file.shard] = finding
    except MissingDependencyError as error:
        return FileChecks(num_files=0, notes=(f"the files are not checked: {error}",))
    return FileChecks(
        num_files=len(places),
        findings=tuple(_missing_as_one(dataset, places, found)),
    )


def _places(reads: Reads) -> list[list[int]]:
    """Return [split, shard] of each file that rows read, once and sorted."""
    places: list[list[int]] = np.unique(np.stack([reads.split, reads.shard]), axis=1).T.tolist()
    return places


def _none_here(reads: Reads) -> FileChecks:
    """Return which files are missing where none of them is here."""
    dataset, num_files, findings = reads.dataset, 0, []
    for index, places in groupby(_places(reads), key=itemgetter(0)):
        split, shards = dataset.splits[index], [shard for _, shard in places]
        folders = {part.data_dir for part in split.files if part.data_dir is not None}
        if any(exists(file_in(folder, DATASET_INFO_FILENAME)) for folder in folders):
            num_files += len(shards)
            findings.append(none_here(dataset, split, shards))
    return FileChecks(num_files=num_files, findings=tuple(findings))


def _missing_as_one(
    dataset: Dataset, places: list[list[int]], found: dict[tuple[int, int], FileFinding]
) -> Iterator[FileFinding]:
    """Yield findings by place, one for a split of which no file that is read is here."""
    for index, of_split in groupby(places, key=itemgetter(0)):
        shards = [shard for _, shard in of_split]
        here = [found[index, shard] for shard in shards if (index, shard) in found]
        if len(here) == len(shards) and all(finding.kind == "missing" for finding in here):
            yield none_here(dataset, dataset.splits[index], shards)
        else:
            yield from here


def _read(
    dataset: Dataset, places: list[list[int]], watch: Watch | None
) -> Iterator[tuple[FileToRead, FileContents]]:
    named: list[FileToRead] = []
    for split, shard in places:
        path = file_path(dataset, split, shard)
        file = FileToRead(split=split, shard=shard, path=path or "")
        if path is None:
            yield file, _MISSING
        else:
            named.append(file)
    num_bytes = sum(_size(file.path) for file in named)
    yield from read_record_files(named, dataset.file_format, num_bytes=num_bytes, watch=watch)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


_MISSING = FileContents(num_records=None, damage=Damage(kind="missing", text="missing"))


# Which files of a dataset are here: in local folders, or behind URLs.


def file_path(dataset: Dataset, split: int, shard: int) -> str | None:
    """Return where a shard's file lies, None where the dataset has no folder."""
    if not dataset.splits[split].files:
        return None
    folder, name = dataset.splits[split].location(shard)
    return None if folder is None else file_in(folder, name)


def exists(path: str) -> bool:
    """Return whether a file is there, in a local folder or behind a URL.

    Raises:
        DatasetError: the place behind the URL cannot be asked.
    """
    place = path_of(path)
    return is_file(place) if isinstance(place, RemotePath) else os.path.exists(place)


def first_file_here(reads: Reads) -> str | None:
    """Return the first file there is of those that rows read, None where there is none."""
    places = dict.fromkeys(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    paths = (file_path(reads.dataset, split, shard) for split, shard in places)
    known = [path for path in paths if path is not None]
    with contextlib.closing(answers(exists, known, at_once=any(map(is_remote, known)))) as here:
        return next((path for path, found in zip(known, here, strict=True) if found), None)


# Many record files of a dataset counted at once, and how far that is.

_REPORTS = 0.1  # seconds between two


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToRead:
    """A file, and where its answer belongs: a split and a shard of it by their indices.

    num_bytes: its size where it is known, by which large files are told from small ones.
    """

    split: int
    shard: int
    path: str
    num_bytes: int = 0


def read_record_files(
    files: Iterable[FileToRead],
    file_format: str,
    *,
    checksums: bool = True,
    num_bytes: int = 0,
    jobs: int | None = None,
    runner: Runner | None = None,
    watch: Watch | None = None,
) -> Iterator[tuple[FileToRead, FileContents]]:
    """Yield what each file holds, in the order in which they are done.

    `watch` is told the bytes read, of `num_bytes`. Few files wait in memory at a time, so that
    there may be millions. An interrupt, or an end of the asking, ends all at once.

    Raises:
        MissingDependencyError: a package that the format needs is not installed.
        DatasetError: a process was ended from outside.
    """
    waiting: dict[int, FileToRead] = {}
    done, reported = 0, 0.0

    def tasks() -> Iterator[FileToCount]:
        for index, file in enumerate(files):
            waiting[index] = file
            yield FileToCount(
                index=index,
                file=StoredFile(path=file.path, num_bytes=file.num_bytes),
                file_format=file_format,
                checksums=checksums,
                listed=False,
            )

    def told(count: int) -> None:
        nonlocal done, reported
        done += count
        now = time.monotonic()
        if watch is not None and num_bytes and now - reported > _REPORTS:
            reported = now
            watch("bytes", min(done, num_bytes), num_bytes)

    for counted in (runner or LocalRunner(jobs=jobs, told=told)).count(tasks()):
        yield waiting.pop(counted.index), counted.contents
    if watch is not None and num_bytes:
        watch("bytes", min(done, num_bytes), num_bytes)
