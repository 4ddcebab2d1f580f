"""Counts that need not be made again: of the user's cache folder, and of a layout.

The cache folder keeps a file of counts for each folder of record files: by name, size and version,
of those whose version says something. What was checked too serves those who only count.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.metadata.index.runner import FileToCount
from shardctl.records.contents import FileContents
from shardctl.stores.paths import split_path
from shardctl.stores.store import StoredFile

if TYPE_CHECKING:
    from shardctl.metadata.index.document import IndexedFile, IndexedLayout

_EVERY = 1.0  # seconds between two writings at least, and so many times as one takes
_TIMES = 20
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
        self._next_writing = now + max(_EVERY, _TIMES * (now - begin))


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
    from shardctl.metadata.index.document import read_index_file

    if path == "-" or not os.path.isfile(path):
        return None
    try:
        return read_index_file(Path(path))
    except DatasetError:  # whatever it is, it is about to be replaced
        return None
