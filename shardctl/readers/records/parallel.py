"""Many record files read at once, and how far that is.

Threads, not processes: reading releases Python's lock and so do the libraries of ArrayRecord and
Parquet; google-crc32c holds it, and one thread checks 3.6 GiB/s of records of 20 kB, more than most
disks deliver. Records of 150 bytes, 1.5 million a second, gain nothing from a second thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from shardctl.readers.records.contents import FileContents, Told
from shardctl.readers.records.read_file import read_record_file

_AT_LEAST, _AT_MOST = 2, 8  # files at once
_AT_ONCE_THERE = 16  # of remote files, whose readers wait for the network
_REPORTS = 0.1  # seconds between two

Watch = Callable[[str, int, int], None]  # what is counted, how much is done, and of how much


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToRead:
    """A file, and where its answer belongs: a split and a shard of it by their indices."""

    split: int
    shard: int
    path: str


@dataclass(kw_only=True)
class _Done:
    """Bytes read by all threads; `stopped` ends them at their next block."""

    num_bytes: int = 0
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def told(self, count: int) -> None:
        if self.stopped:
            raise _StoppedError
        with self.lock:
            self.num_bytes += count


class _StoppedError(Exception):
    """The reading is to end; nobody waits for an answer."""


def read_record_files(
    files: Iterable[FileToRead],
    file_format: str,
    *,
    checksums: bool = True,
    num_bytes: int = 0,
    remote: bool = False,
    watch: Watch | None = None,
) -> Iterator[tuple[FileToRead, FileContents]]:
    """Yield what each file holds, in the order in which they are done.

    `watch` is told the bytes read, of `num_bytes`. Few files wait in memory at a time, so that
    there may be millions. An interrupt, or an end of the asking, ends all threads at their next
    block of a file.

    Raises:
        MissingDependencyError: a package that the format needs is not installed.
    """
    done = _Done()
    workers = _AT_ONCE_THERE if remote else min(max(os.cpu_count() or 1, _AT_LEAST), _AT_MOST)
    executor = ThreadPoolExecutor(workers, thread_name_prefix="shardctl")
    waiting: dict[Future[FileContents], FileToRead] = {}
    source = iter(files)

    def report() -> None:
        if watch is not None and num_bytes:
            watch("bytes", min(done.num_bytes, num_bytes), num_bytes)

    try:
        while True:
            while len(waiting) < 4 * workers and (file := next(source, None)) is not None:
                waiting[executor.submit(_read, file, file_format, checksums, done.told)] = file
            if not waiting:
                break
            finished, _ = wait(waiting, timeout=_REPORTS, return_when=FIRST_COMPLETED)
            report()
            for future in finished:
                yield waiting.pop(future), future.result()
    finally:
        done.stopped = True
        executor.shutdown(wait=True, cancel_futures=True)


def _read(file: FileToRead, file_format: str, checksums: bool, told: Told) -> FileContents:
    return read_record_file(file.path, file_format, checksums=checksums, told=told)
