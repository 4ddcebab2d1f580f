"""Many record files of a dataset counted at once, and how far that is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardctl.core.progress import Watch
from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.counting.local_runner import LocalRunner
from shardctl.readers.index.runner import FileToCount, Runner
from shardctl.readers.records.contents import FileContents

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
