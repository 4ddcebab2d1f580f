"""Counts files, except those whose counts are in the user's cache folder, in their order.

The cache folder keeps a file of counts for each folder of record files: by name, size and version,
of those whose version tells whether they changed. A checked file also answers where only a
count is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.progress import WATCHING, Watch
from shardctl.base.text import printable, quoted
from shardctl.records.contents import FileContents
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import split_path

if TYPE_CHECKING:
    from shardctl.metadata.index.workers import FileToCount, Runner

_REPORTS = 0.1  # seconds between two
# How far apart two times of change are at least: whole seconds are what some file systems keep, two
# of them FAT; others take the time of the last tick of the kernel's clock, at most 10 ms ago.
_COARSE, _FINE = 2_100_000_000, 30_000_000
_SECOND = 1_000_000_000
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "created")
_MOST_BYTES = 1 << 28  # of the counts of one folder
_MOST_FOLDERS = 4096  # that are kept

_Row = list[Any]  # format, whether it was checked, size, version, records, compression, digest


@dataclass(kw_only=True)
class Counts:
    """What files hold, by their positions in the list of them.

    contents: of whole files alone; None for a file that is broken, or that was not counted since an
        earlier one is. unsettled: files changed in what their clock takes for the future, whose
        version says nothing. warnings: what went wrong with the cache, a line at the most.
    """

    contents: list[FileContents | None]
    broken: dict[int, FileContents] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)
    num_known: int = 0
    num_counted: int = 0
    num_bytes_read: int = 0
    warnings: tuple[str, ...] = ()

    def fail(self, index: int, contents: FileContents) -> None:
        """Note that a file is not as it should be, whatever it holds."""
        self.broken[index] = contents
        self.contents[index] = None


def count_files(
    files: Sequence[StoredFile],
    file_format: str,
    *,
    cache: bool = False,
    checksums: bool = False,
    digest: bool = False,
    runner: Runner | None = None,
    jobs: int | None = None,
    keep_going: bool = False,
    listed: bool = True,
    watch: Watch | None = None,
) -> Counts:
    """Return what files hold; without `keep_going` up to the first broken one in their order.

    cache: counts that are known are taken from the user's cache folder, and new ones kept there.

    A file that changed just now may change again and keep its time of change, so that its version
    would not tell (git calls it racily clean). It is counted when that time is over. Without
    `listed` nothing is known of the files but their paths, at which anything may be.
    """
    from shardctl.metadata.index.workers import FileToCount, LocalRunner  # starts processes

    how: dict[str, Any] = {"file_format": file_format, "checksums": checksums, "listed": listed}
    how["digest"] = digest
    tasks = [FileToCount(index=index, file=file, **how) for index, file in enumerate(files)]
    folder = cache_folder(os.environ) if cache else None
    counting = _Counting(tasks, CountCache(folder), keep_going, watch or WATCHING.get())
    found = counting.run(runner or LocalRunner(jobs=jobs, report=counting.note_read))
    if cache and folder is None:
        found.warnings = ("no home folder to keep counts in; set SHARDCTL_CACHE_DIR",)
    return found


class _Counting:
    def __init__(
        self, tasks: Sequence[FileToCount], cache: CountCache, keep_going: bool, watch: Watch | None
    ) -> None:
        self._tasks, self._cache, self._watch = tasks, cache, watch
        self._keep_going = keep_going
        self._reads_all = any(task.checksums or task.digest for task in tasks[:1])
        self._num_bytes = 0 if watch is None else sum(task.file.num_bytes for task in tasks)
        self._done = self._read = 0  # bytes of files that are done, and of what was read
        self._stop = len(tasks)  # none from here on is asked for
        self._reported = 0.0
        self._found = Counts(contents=[None] * len(tasks))

    def run(self, runner: Runner) -> Counts:
        found = self._found
        try:
            # The runner asks `_to_count` for files as it has room, so that files behind a broken
            # one are never asked for.
            for counted in runner.count(self._to_count()):
                index, contents = counted.index, counted.contents
                found.num_counted += 1
                found.num_bytes_read += contents.num_bytes_read
                self._note(index, contents)
                # What may still change must not be believed next time.
                if index not in found.unsettled and found.contents[index] is not None:
                    self._cache.keep(self._tasks[index], contents)
        finally:
            # Also after an interrupt, so that what was counted is not counted again.
            self._cache.write()
        self._report(last=True)
        found.warnings = () if self._cache.failed is None else (self._cache.failed,)
        return found

    def note_read(self, num_bytes: int) -> None:
        """Note what was read; where contents are read it tells how far a large file is."""
        self._read += num_bytes if self._reads_all else 0
        self._report()

    def _to_count(self) -> Iterator[FileToCount]:
        """Yield the files of which nothing is known, each once its time of change tells of it."""
        for task in self._tasks:
            if task.index >= self._stop:
                break
            contents = self._cache.find(task)
            if contents is not None:
                self._found.num_known += 1
                self.note_read(task.file.num_bytes)
                self._note(task.index, contents)
                continue
            soon = _settles_at(task.file) - time.time_ns()
            if 0 < soon <= _COARSE:  # what is further ahead is not the time of a change just now
                time.sleep(soon / _SECOND)
            if _settles_at(task.file) > time.time_ns():
                self._found.unsettled.add(task.index)
            yield task

    def _note(self, index: int, contents: FileContents) -> None:
        self._done += self._tasks[index].file.num_bytes
        if contents.damage is not None or contents.num_records is None:
            self._found.fail(index, contents)
            # Files are done in any order: what matters is the first broken one in their order.
            self._stop = self._stop if self._keep_going else min(self._stop, index)
        else:
            self._found.contents[index] = contents
        self._report()

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._watch is None or not (last or now - self._reported > _REPORTS):
            return
        self._reported = now
        total, num_bytes = len(self._tasks), self._num_bytes
        done = self._found.num_known + self._found.num_counted
        if not self._tasks or self._tasks[0].listed:
            self._watch("files", total if last else done, total)
        if num_bytes:
            # What is read of large files not yet done, or what is done: whichever is further.
            read = min(max(self._done, self._read), num_bytes)
            self._watch("bytes", num_bytes if last else read, num_bytes)


def _settles_at(file: StoredFile) -> int:
    """Return from when on a change shows in the time of change, in ns; 0 where no clock tells."""
    kind, _, stamp = file.version.partition(":")
    try:
        if kind == "modified" and "," in stamp:  # of a web server, in whole seconds
            from email.utils import parsedate_to_datetime

            return int(parsedate_to_datetime(stamp).timestamp()) * _SECOND + _COARSE
        # fsspec's times are seconds, a fraction of them behind a point.
        changed = int(float(stamp) * _SECOND) if "." in stamp else int(stamp)
    except (ValueError, OverflowError):
        return 0
    return changed + (_FINE if changed % _SECOND else _COARSE) if kind in _TIMES else 0


class CountCache:
    """Counts in a cache folder, and those that become known; None for a folder keeps nothing.

    failed: a line about what went wrong; counting continues without the cache.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / "counts"
        self._rows: dict[str, dict[str, _Row]] = {}
        self._changed: set[str] = set()
        self.failed: str | None = None

    def find(self, task: FileToCount) -> FileContents | None:
        """Return what is known of a file, None where nothing is."""
        file = task.file
        folder, name = split_path(file.path)
        row = self._of_folder(folder).get(name) if file.version else None
        if row is None or [row[0], *row[2:4]] != [task.file_format, file.num_bytes, file.version]:
            return None
        # A count from framing alone does not answer for checksums; the other way it does.
        if row[1] < task.checksums or (task.digest and row[6] is None):
            return None
        return FileContents(
            num_records=row[4],
            num_bytes=file.num_bytes,
            checked="checksums" if row[1] else "framing",
            compression=row[5],
            digest=row[6],
        )

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a whole file holds; it is written with others."""
        file = task.file
        if file.version and self._folder is not None:
            folder, name = split_path(file.path)
            row = [task.file_format, task.checksums, file.num_bytes, file.version]
            row += [contents.num_records, contents.compression, contents.digest]
            self._of_folder(folder)[name] = row
            self._changed.add(folder)

    def _of_folder(self, folder: str) -> dict[str, _Row]:
        if folder not in self._rows:
            self._rows[folder] = {} if self._folder is None else _read(self._path(folder))
        return self._rows[folder]

    def _path(self, folder: str) -> Path:
        # A hash, since a path may be longer than a file name can be.
        name = hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()
        return (self._folder or Path()) / f"{name}.json"

    def write(self) -> None:
        """Write what became known; what another process wrote meanwhile of a folder may be lost."""
        if self._folder is None:
            return
        try:
            for changed in self._changed:
                body = json.dumps(self._rows[changed]).encode()
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                # Not synced: what a crash leaves of it is not believed.
                path = self._path(changed)
                # A name of this process and object, so that two writers do not mix their bytes.
                written = path.with_suffix(f".{os.getpid()}-{id(self)}")
                written.write_bytes(b"%08x\n%b" % (zlib.crc32(body), body))
                os.replace(written, path)
            with suppress(FileNotFoundError):  # another process removes them too
                kept = sorted(self._folder.iterdir(), key=lambda one: one.stat().st_mtime_ns)
                for old in kept[:-_MOST_FOLDERS]:
                    old.unlink(missing_ok=True)
        except OSError as error:
            why = printable(error.strerror or str(error), 200)
            self.failed = f"counts are not kept in {quoted(str(self._folder), 200)}: {why}"


def _read(path: Path) -> dict[str, _Row]:
    """Return the counts in a file; none where it is not there, or damaged anywhere."""
    try:
        with path.open("rb") as file:
            # The CRC in the first line: a file that was torn or edited counts as none.
            seal, _, body = file.read(_MOST_BYTES).partition(b"\n")
        rows: dict[str, _Row] = json.loads(body) if seal == b"%08x" % zlib.crc32(body) else {}
        if all(map(_is_row, rows.values())):
            return rows
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return {}


def _is_row(row: _Row) -> bool:
    *_, checked, _, _, records, packed, digest = row
    known = isinstance(checked, bool) and type(records) is int
    texts = isinstance(packed, str | None) and isinstance(digest, str | None)
    return len(row) == 7 and known and texts and 0 <= records < 1 << 63


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Return where shardctl keeps what can be made again, None where there is no home folder.

    >>> cache_folder({"SHARDCTL_CACHE_DIR": "/scratch/cache"})
    PosixPath('/scratch/cache')
    """
    if env.get("SHARDCTL_CACHE_DIR"):
        return Path(env["SHARDCTL_CACHE_DIR"])
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"], "shardctl")
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".cache" / "shardctl"
