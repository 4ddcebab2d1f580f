"""Files counted one by one, but for those whose counts are known; answers in their order."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from shardctl.core.progress import Watch
from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.counting.known import Known
from shardctl.readers.index.counting.local_runner import LocalRunner
from shardctl.readers.index.runner import FileToCount, Runner
from shardctl.readers.records.contents import Compression, FileContents

_CHUNK = 4096  # files whose counts are looked up at once
_REPORTS = 0.1  # seconds between two
# How far apart two times of change are at least: whole seconds are what some file systems keep, two
# of them FAT; others take the time of the last tick of the kernel's clock, at most 10 ms ago.
_COARSE, _FINE = 2_100_000_000, 30_000_000
_SECOND = 1_000_000_000
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "created")
NOT_COUNTED = -1
COMPRESSIONS: tuple[Compression | None, ...] = (None, "GZIP", "ZLIB")


@dataclass(kw_only=True)
class Counts:
    """What files hold, by their places in the list of them.

    num_records: -1 for a file that is broken, or that was not counted since an earlier one is.
    compressions: the place in `COMPRESSIONS` of each.
    unsettled: files changed in what their clock takes for the future, whose version says nothing.
    """

    num_records: array[int]
    compressions: bytearray
    broken: dict[int, FileContents] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)
    num_known: int = 0
    num_counted: int = 0
    num_bytes_read: int = 0

    def fail(self, place: int, contents: FileContents) -> None:
        """Note that a file is not as it should be, whatever it holds."""
        self.broken[place] = contents
        self.num_records[place] = NOT_COUNTED


def count_files(
    files: Sequence[StoredFile],
    file_format: str,
    *,
    checksums: bool,
    runner: Runner | None = None,
    jobs: int | None = None,
    known: Known,
    keep_going: bool,
    watch: Watch | None,
) -> Counts:
    """Return what files hold; without `keep_going` up to the first broken one in their order.

    A file that changed just now may change again and keep its time of change, so that its version
    would not tell (git calls it racily clean). It is counted last, when that time is over.
    """
    counting = _Counting(
        files=files,
        file_format=file_format,
        checksums=checksums,
        known=known,
        keep_going=keep_going,
        watch=watch,
    )
    return counting.run(runner or LocalRunner(jobs=jobs, told=counting.told))


@dataclass(kw_only=True)
class _Counting:
    files: Sequence[StoredFile]
    file_format: str
    checksums: bool
    known: Known
    keep_going: bool
    watch: Watch | None

    def __post_init__(self) -> None:
        files = self.files
        self._num_bytes = 0 if self.watch is None else sum(file.num_bytes for file in files)
        self._done, self._told = 0, 0  # bytes of files that are done, and of what was read
        self._stop = len(files)  # none from here on is asked for
        self._reported = 0.0
        self._found = Counts(
            num_records=array("q", [NOT_COUNTED]) * len(files),
            compressions=bytearray(len(files)),
        )

    def run(self, runner: Runner) -> Counts:
        found = self._found
        for counted in runner.count(self._tasks()):
            found.num_counted += 1
            found.num_bytes_read += counted.contents.num_bytes_read
            self._done += self.files[counted.index].num_bytes
            self._note(counted.index, counted.contents)
            if counted.index not in found.unsettled:
                task = self._task(counted.index, self.files[counted.index])
                self.known.keep(task, counted.contents)
        self._report(last=True)
        return found

    def told(self, num_bytes: int) -> None:
        """Note what was read; where contents are read it tells how far a large file is."""
        self._told += num_bytes if self.checksums else 0
        self._report()

    def _task(self, index: int, file: StoredFile) -> FileToCount:
        return FileToCount(
            index=index,
            file=file,
            file_format=self.file_format,
            checksums=self.checksums,
        )

    def _tasks(self) -> Iterator[FileToCount]:
        """Yield the files of which nothing is known, those that changed just now at the end."""
        late: list[FileToCount] = []
        files: Iterator[tuple[int, StoredFile]] = enumerate(self.files)
        while tasks := [self._task(index, file) for index, file in islice(files, _CHUNK)]:
            now = time.time_ns()
            for task, contents in zip(tasks, self.known.find(tasks), strict=True):
                if task.index >= self._stop:
                    files = iter(())
                    break
                if contents is not None:
                    self._found.num_known += 1
                    self._done += task.file.num_bytes
                    self._told += task.file.num_bytes if self.checksums else 0
                    self._note(task.index, contents)
                elif _settles_at(task.file) > now:
                    late.append(task)
                else:
                    yield task
        if not late:
            return
        now = time.time_ns()
        # A time that is further ahead is not that of a change just now.
        soon = [at for task in late if now < (at := _settles_at(task.file)) <= now + _COARSE]
        time.sleep((max(soon) - now) / _SECOND if soon else 0)
        now = time.time_ns()
        for task in late:
            if task.index < self._stop:
                if _settles_at(task.file) > now:
                    self._found.unsettled.add(task.index)
                yield task

    def _note(self, index: int, contents: FileContents) -> None:
        found = self._found
        if contents.damage is not None or contents.num_records is None:
            found.broken[index] = contents
            if not self.keep_going:
                self._stop = min(self._stop, index)
        else:
            found.num_records[index] = contents.num_records
            found.compressions[index] = COMPRESSIONS.index(contents.compression)
        self._report()

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self.watch is not None and (last or now - self._reported > _REPORTS):
            self._reported = now
            done = self._found.num_known + self._found.num_counted
            self.watch("files", len(self.files) if last else done, len(self.files))
            if self._num_bytes:
                num_bytes = self._num_bytes if last else max(self._done, self._told)
                self.watch("bytes", min(num_bytes, self._num_bytes), self._num_bytes)


def _settles_at(file: StoredFile) -> int:
    """Return from when on a change shows in the time of change, in ns; 0 where no clock tells."""
    kind, _, stamp = file.version.partition(":")
    if kind == "modified" and "," in stamp:  # of a web server, in whole seconds
        from email.utils import parsedate_to_datetime

        try:
            return int(parsedate_to_datetime(stamp).timestamp()) * _SECOND + _COARSE
        except (ValueError, OverflowError):
            return 0
    try:
        # fsspec's times are seconds, a fraction of them behind a point.
        changed = int(float(stamp) * _SECOND) if "." in stamp else int(stamp)
    except (ValueError, OverflowError):
        return 0
    if kind not in _TIMES:
        return 0
    return changed + (_FINE if changed % _SECOND else _COARSE)
