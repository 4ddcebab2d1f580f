"""Files counted one by one, but for those whose counts are known; answers in their order."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.progress import WATCHING, Watch
from shardctl.base.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.metadata.index.workers import FileToCount, LocalRunner, Runner
from shardctl.records.contents import FileContents
from shardctl.stores.paths import split_path
from shardctl.stores.store import StoredFile

if TYPE_CHECKING:
    from shardctl.metadata.layouts import IndexedFile, IndexedLayout


# Counts that need not be made again: of the user's cache folder, and of a layout.
#
# The cache folder keeps a file of counts for each folder of record files: by name, size and
# version, of those whose version says something. What was checked too serves those who only count.

_EVERY = 1.0  # seconds between two writings at least, and so many times as one takes
_TIMES_KNOWN = 20
_MOST_BYTES = 1 << 28  # of the counts of one folder
_MOST_FOLDERS = 4096  # that are kept

_Row = list[Any]  # format, whether it was checked, size, version, records, compression


class Known:
    """What is known of files, and what becomes known as they are counted.

    failed: a line about what went wrong with the cache; counting goes on without it.
    """

    def __init__(self, cache: Path | None, layout: IndexedLayout | None) -> None:
        self._cache = cache
        self._rows: dict[str, dict[str, _Row]] = {}
        self._changed: set[str] = set()
        self._next_writing = time.monotonic() + _EVERY
        self.failed: str | None = None
        self._earlier: dict[str, IndexedFile] = {}
        self._layout = layout
        if layout is not None:
            self._earlier = {one.file.path: one for one in layout.files()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong, one line at the most."""
        return () if self.failed is None else (self.failed,)

    def find(self, task: FileToCount) -> FileContents | None:
        """Return what is known of a file, None where nothing is."""
        file = task.file
        folder, name = split_path(file.path)
        row = self._of_folder(folder).get(name) if file.version else None
        wanted = [task.file_format, file.num_bytes, file.version]
        if row is not None and [row[0], *row[2:4]] == wanted and row[1] >= task.checksums:
            checked = "checksums" if row[1] else "framing"
            return _contents(file, row[4], checked=checked, compression=row[5])
        then = self._earlier.get(file.path)
        # A layout does not say whether contents were checked, so it serves those who count alone.
        if then is not None and self._layout is not None and not task.checksums:
            layout = self._layout.dataset
            if then.file == file and file.version and layout.file_format == task.file_format:
                packed = layout.compression if file.num_bytes else None
                contents = _contents(file, then.num_records, compression=packed)
                self.keep(task, contents)
                return contents
        return None

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a whole file holds; it is written with others."""
        file = task.file
        if file.version and self._cache is not None:
            folder, name = split_path(file.path)
            row = [task.file_format, task.checksums, file.num_bytes, file.version]
            self._of_folder(folder)[name] = [*row, contents.num_records, contents.compression]
            self._changed.add(folder)
            if time.monotonic() > self._next_writing:
                self.write()

    def _of_folder(self, folder: str) -> dict[str, _Row]:
        if folder not in self._rows:
            self._rows[folder] = {} if self._cache is None else _read(_place(self._cache, folder))
        return self._rows[folder]

    def write(self) -> None:
        """Write what became known; what another process wrote meanwhile of a folder may be lost."""
        begin, folder = time.monotonic(), (self._cache or Path()) / "counts"
        try:
            for changed in self._changed:
                body = json.dumps(self._rows[changed]).encode()
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                # Not synced: what a crash leaves of it is not believed.
                path = _place(self._cache or Path(), changed)
                written = path.with_suffix(f".{os.getpid()}-{id(self)}")
                written.write_bytes(b"%08x\n%b" % (zlib.crc32(body), body))
                os.replace(written, path)
            with suppress(FileNotFoundError):  # another process removes them too
                kept = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime_ns)
                for old in kept[:-_MOST_FOLDERS]:
                    old.unlink(missing_ok=True)
        except OSError as error:
            why = printable(error.strerror or str(error), 200)
            self.failed = f"counts are not kept in {quoted(str(folder), 200)}: {why}"
        self._changed.clear()
        now = time.monotonic()
        self._next_writing = now + max(_EVERY, _TIMES_KNOWN * (now - begin))


def _contents(
    file: StoredFile, num_records: int, *, checked: Any = "framing", compression: Any = None
) -> FileContents:
    return FileContents(
        num_records=num_records, num_bytes=file.num_bytes, checked=checked, compression=compression
    )


def _place(cache: Path, folder: str) -> Path:
    name = hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()
    return cache / "counts" / f"{name}.json"


def _read(path: Path) -> dict[str, _Row]:
    """Return the counts in a file; none where it is not there, or damaged in any place."""
    try:
        with path.open("rb") as file:
            seal, _, body = file.read(_MOST_BYTES).partition(b"\n")
        rows: dict[str, _Row] = json.loads(body) if seal == b"%08x" % zlib.crc32(body) else {}
        if all(isinstance(row[4], int) and len(row) == 6 for row in rows.values()):
            return rows
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return {}


@contextmanager
def known_counts(*, cache: bool, earlier: str | os.PathLike[str] | None) -> Iterator[Known]:
    """Open what is known: the user's cache, and a layout where a file of `index` is there."""
    layout = None if earlier is None else read_earlier(os.fspath(earlier))
    folder = cache_folder(os.environ) if cache else None
    known = Known(folder, layout)
    if cache and folder is None:
        known.failed = "no home folder to keep counts in; set SHARDCTL_CACHE_DIR"
    try:
        yield known
    finally:
        known.write()


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Return where shardctl keeps what can be made again, None where there is no such place.

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
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "shardctl"
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local", "shardctl")
    return home / ".cache" / "shardctl"


def read_earlier(path: str) -> IndexedLayout | None:
    """Return the layout that is about to be replaced, None where no such file of ours is there."""
    from shardctl.metadata.layouts import read_index_file

    if path == "-" or not os.path.isfile(path):
        return None
    try:
        return read_index_file(Path(path))
    except DatasetError:  # whatever it is, it is about to be replaced
        return None


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
