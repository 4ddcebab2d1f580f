"""Files counted one by one, but for those whose counts are known; answers in their order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shardctl.base.progress import WATCHING, Watch
from shardctl.metadata.index.counting.known import Known
from shardctl.metadata.index.counting.local_runner import LocalRunner
from shardctl.metadata.index.runner import FileToCount, Runner
from shardctl.records.contents import FileContents
from shardctl.stores.store import StoredFile

_REPORTS = 0.1  # seconds between two
# How far apart two times of change are at least: whole seconds are what some file systems keep, two
# of them FAT; others take the time of the last tick of the kernel's clock, at most 10 ms ago.
_COARSE, _FINE = 2_100_000_000, 30_000_000
_SECOND = 1_000_000_000
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "created")


@dataclass(kw_only=True)
class Counts:
    """What files hold, by their places in the list of them.

    contents: of whole files alone; None for a file that is broken, or that was not counted since an
        earlier one is. unsettled: files changed in what their clock takes for the future, whose
        version says nothing.
    """

    contents: list[FileContents | None]
    broken: dict[int, FileContents] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)
    num_known: int = 0
    num_counted: int = 0
    num_bytes_read: int = 0

    def fail(self, place: int, contents: FileContents) -> None:
        """Note that a file is not as it should be, whatever it holds."""
        self.broken[place] = contents
        self.contents[place] = None


def count_files(
    files: Sequence[StoredFile],
    file_format: str,
    known: Known,
    *,
    checksums: bool = False,
    runner: Runner | None = None,
    jobs: int | None = None,
    keep_going: bool = False,
    listed: bool = True,
    watch: Watch | None = None,
) -> Counts:
    """Return what files hold; without `keep_going` up to the first broken one in their order.

    A file that changed just now may change again and keep its time of change, so that its version
    would not tell (git calls it racily clean). It is counted last, when that time is over. Without
    `listed` nothing is said of the files but their paths, at which anything may be.
    """
    watch = watch or WATCHING.get()
    counting = _Counting(files, file_format, known, checksums, keep_going, listed, watch)
    return counting.run(runner or LocalRunner(jobs=jobs, told=counting.told))


class _Counting:
    def __init__(
        self,
        files: Sequence[StoredFile],
        file_format: str,
        known: Known,
        checksums: bool,
        keep_going: bool,
        listed: bool,
        watch: Watch | None,
    ) -> None:
        self._files, self._format, self._known = files, file_format, known
        self._checksums, self._keep_going, self._watch = checksums, keep_going, watch
        self._listed = listed
        self._num_bytes = 0 if watch is None else sum(file.num_bytes for file in files)
        self._done = self._read = 0  # bytes of files that are done, and of what was read
        self._stop = len(files)  # none from here on is asked for
        self._reported = 0.0
        self._found = Counts(contents=[None] * len(files))

    def run(self, runner: Runner) -> Counts:
        found = self._found
        for counted in runner.count(self._tasks()):
            index, contents = counted.index, counted.contents
            found.num_counted += 1
            found.num_bytes_read += contents.num_bytes_read
            self._note(index, contents)
            if index not in found.unsettled and found.contents[index] is not None:
                self._known.keep(self._task(index), contents)
        self._report(last=True)
        return found

    def told(self, num_bytes: int) -> None:
        """Note what was read; where contents are read it tells how far a large file is."""
        self._read += num_bytes if self._checksums else 0
        self._report()

    def _task(self, index: int) -> FileToCount:
        return FileToCount(
            index=index,
            file=self._files[index],
            file_format=self._format,
            checksums=self._checksums,
            listed=self._listed,
        )

    def _tasks(self) -> Iterator[FileToCount]:
        """Yield the files of which nothing is known, those that changed just now at the end."""
        late: list[FileToCount] = []
        for index, file in enumerate(self._files):
            if index >= self._stop:
                break
            task = self._task(index)
            contents = self._known.find(task)
            if contents is not None:
                self._found.num_known += 1
                self.told(file.num_bytes)
                self._note(index, contents)
            elif _settles_at(file) > time.time_ns():
                late.append(task)
            else:
                yield task
        now = time.time_ns()
        # A time that is further ahead is not that of a change just now.
        soon = [at for task in late if now < (at := _settles_at(task.file)) <= now + _COARSE]
        if soon:
            time.sleep((max(soon) - now) / _SECOND)
        for task in late:
            if task.index < self._stop:
                if _settles_at(task.file) > time.time_ns():
                    self._found.unsettled.add(task.index)
                yield task

    def _note(self, index: int, contents: FileContents) -> None:
        self._done += self._files[index].num_bytes
        if contents.damage is not None or contents.num_records is None:
            self._found.fail(index, contents)
            self._stop = self._stop if self._keep_going else min(self._stop, index)
        else:
            self._found.contents[index] = contents
        self._report()

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._watch is not None and (last or now - self._reported > _REPORTS):
            self._reported = now
            total, num_bytes = len(self._files), self._num_bytes
            done = self._found.num_known + self._found.num_counted
            if self._listed:
                self._watch("files", total if last else done, total)
            if num_bytes:
                read = min(max(self._done, self._read), num_bytes)
                self._watch("bytes", num_bytes if last else read, num_bytes)


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
