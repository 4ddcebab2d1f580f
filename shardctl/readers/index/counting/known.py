"""Counts that need not be made again: of the user's cache folder, a layout, an index of shards.

The database under the cache folder keeps counts of files by path, size and version, of those whose
version says something; one whose contents were checked too serves those who only count. Several
processes may use it at once.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shardctl.core.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import Compression, FileContents
from shardctl.readers.records.sidecars import Sidecars

if TYPE_CHECKING:
    from shardctl.readers.index.document import IndexedLayout


class Known:
    """What is known of files, and what becomes known as they are counted.

    num_said: files whose count was taken from their index, of shards that are packed in a way that
        nothing here unpacks. It is asked each time, and kept by nobody: another index would say it
        of the same file.
    """

    def __init__(
        self, cache: KnownCounts | None, layout: IndexedLayout | None, sidecars: Sidecars | None
    ) -> None:
        self.num_said = 0
        self._cache, self._sidecars = cache, sidecars
        self._earlier = None if layout is None else EarlierCounts(layout)

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each thing that went wrong, and how many counts nobody made."""
        warnings = () if self._cache is None else tuple(self._cache.warnings)
        if not self.num_said:
            return warnings
        said = f"{self.num_said} files are packed in a way that is not unpacked here: their counts"
        return (*warnings, f"{said} are those of index.json")

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        """Return what is known of files, None for each of which nothing is."""
        found: list[FileContents | None] = [None] * len(files)
        if self._cache is not None:
            found = self._cache.find(files)
        if self._earlier is None and not self._sidecars:
            return found
        return [known or self._other(task) for task, known in zip(files, found, strict=True)]

    def _other(self, task: FileToCount) -> FileContents | None:
        contents = None if self._earlier is None else self._earlier.find(task)
        if contents is not None:
            self.keep(task, contents)
            return contents
        is_packed = self._sidecars and task.file_format == "mds"
        count = self._sidecars.count_instead(task.file) if self._sidecars and is_packed else None
        if count is None:
            return None
        self.num_said += 1
        return FileContents(num_records=count, num_bytes=task.file.num_bytes)

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a file holds."""
        if self._cache is not None:
            self._cache.keep(task, contents)


@contextmanager
def known_counts(
    *, cache: bool, earlier: str | os.PathLike[str] | None, sidecars: Sidecars | None = None
) -> Iterator[Known]:
    """Open what is known: the user's cache, and a layout where a file of `index` is there."""
    layout = None if earlier is None else read_earlier(os.fspath(earlier))
    if not cache:
        yield Known(None, layout, sidecars)
        return
    with KnownCounts(cache_folder(os.environ)) as database:
        yield Known(database, layout, sidecars)


# The database of the cache folder.

FILENAME = "counts.sqlite"
_APPLICATION = 0x73686364  # "shcd", in the head of the file
_SCHEMA = 2
_PATIENCE = 5.0  # seconds that a lock of another process is waited for
_EVERY = 1.0  # seconds between two writings
_MOST_WAITING = 20_000  # counts that wait in memory
_MOST_BYTES = 1 << 30  # of the database, which is begun anew then: some five million files
_AT_ONCE = 900  # paths in a query; SQLite takes 999 values at least
_COMPRESSIONS: dict[object, Compression] = {"GZIP": "GZIP", "ZLIB": "ZLIB"}

_TABLE = (
    "CREATE TABLE files(path BLOB, format TEXT, checksums INTEGER, num_bytes INTEGER, version TEXT,"
    " num_records INTEGER, compression TEXT, seal INTEGER,"
    " PRIMARY KEY(path, format, checksums)) WITHOUT ROWID"
)
_FIND = "SELECT * FROM files WHERE path IN (%s)"
_KEEP = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_FULL")  # what is there can be read

_Row = tuple[object, ...]


class KnownCounts:
    """The counts in a folder's database; without a folder, or where it fails, none are known.

    `warnings` says in a line each what went wrong; counting goes on without it.
    """

    def __init__(self, folder: Path | None) -> None:
        self.warnings: list[str] = []
        self._path = Path() if folder is None else folder / FILENAME
        self._database: sqlite3.Connection | None = None
        self._waiting: list[_Row] = []
        self._written = time.monotonic()
        self._writable = True
        if folder is None:
            self.warnings.append("no home folder to keep counts in; set SHARDCTL_CACHE_DIR")
            return
        try:
            self._database = self._opened()
        except sqlite3.Error as error:
            self._failed(error)
        except OSError as error:
            self._say(error.strerror or str(error))

    def __enter__(self) -> KnownCounts:
        return self

    def __exit__(self, *error: object) -> None:
        """Write what waits."""
        if self._waiting:
            self._write(last=True)
        if self._database is not None:
            self._database.close()
            self._database = None

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        """Return what is known of files, None for each of which nothing is."""
        rows: dict[bytes, list[_Row]] = {}
        for start in range(0, len(files), _AT_ONCE):
            if self._database is None:
                break
            paths = [_encoded(task.file.path) for task in files[start : start + _AT_ONCE]]
            try:
                query = self._database.execute(_FIND % ",".join("?" * len(paths)), paths)
                for row in query:
                    rows.setdefault(row[0], []).append(row)
            except sqlite3.Error as error:
                self._failed(error)
        return [_contents_in(rows.get(_encoded(task.file.path), ()), task) for task in files]

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a file holds; it is written with others, every second."""
        whole = contents.damage is None and contents.num_records is not None
        if self._database is None or not self._writable or not whole or not task.file.version:
            return
        file = task.file
        row: _Row = (_encoded(file.path), task.file_format, int(task.checksums), file.num_bytes)
        row += (file.version, contents.num_records, contents.compression)
        self._waiting.append((*row, _seal(row)))
        if time.monotonic() - self._written > _EVERY or len(self._waiting) >= _MOST_WAITING:
            self._write()

    def _opened(self) -> sqlite3.Connection | None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            if self._path.stat().st_size > _MOST_BYTES:
                self._path.unlink()
        database = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        try:
            schema = _schema_of(database)
            if schema > _SCHEMA:
                self._say("a newer shardctl writes it")
                database.close()
                return None
            if schema < _SCHEMA:
                database.execute("BEGIN IMMEDIATE")
                if _schema_of(database) < _SCHEMA:  # no other process was first
                    for table in ("files", "folders"):
                        database.execute(f"DROP TABLE IF EXISTS {table}")
                    database.execute(_TABLE)
                    database.execute(f"PRAGMA application_id = {_APPLICATION}")
                    database.execute(f"PRAGMA user_version = {_SCHEMA}")
                database.execute("COMMIT")
        except BaseException:
            database.close()
            raise
        return database

    def _write(self, *, last: bool = False) -> None:
        if self._database is None:
            return
        self._written = time.monotonic()
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany(_KEEP, self._waiting)
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._database.execute("ROLLBACK")
                raise
            self._waiting = []
        except sqlite3.Error as error:
            busy = _name_of(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")
            if last or not busy or len(self._waiting) >= _MOST_WAITING:  # else the next second
                self._failed(error)

    def _failed(self, error: sqlite3.Error) -> None:
        """Go on without the database, or without writing to it; a damaged one is put aside."""
        name, aside = _name_of(error), ""
        self._waiting, self._writable = [], False
        if self._database is not None and not name.startswith(_UNWRITABLE):
            self._database.close()
            self._database = None
        if name.startswith(_DAMAGED) or type(error) is sqlite3.DatabaseError:
            with suppress(OSError):
                os.replace(self._path, self._path.with_suffix(".damaged"))
            aside = f"; it was put aside as {self._path.with_suffix('.damaged').name}"
        self._say(f"{error}{aside}")

    def _say(self, why: str) -> None:
        path = quoted(str(self._path), 200)
        self.warnings.append(f"counts are not kept in {path}: {printable(why, 200)}")


def _schema_of(database: sqlite3.Connection) -> int:
    """Return by which version of the table a database was made, 0 where it is empty."""
    if database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return 0
    if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise sqlite3.DatabaseError("it is not one of shardctl's")
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _name_of(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "")


def _encoded(path: str) -> bytes:
    """Return a path as bytes, those of names that are no UTF-8 too."""
    return path.encode("utf-8", "surrogatepass")


def _contents_in(rows: Sequence[_Row], task: FileToCount) -> FileContents | None:
    """Return what is kept of a file, None where that is of another version of it."""
    wanted = (task.file_format, task.file.num_bytes, task.file.version)
    for *row, seal in rows:
        _, file_format, checksums, num_bytes, version, num_records, compression = row
        same = (file_format, num_bytes, version) == wanted and version
        if not same or seal != _seal(row) or type(num_records) is not int:
            continue
        if checksums or not task.checksums:
            return FileContents(
                num_records=num_records,
                num_bytes=task.file.num_bytes,
                checked="checksums" if checksums else "framing",
                compression=_COMPRESSIONS.get(compression),
            )
    return None


def _seal(row: Sequence[object]) -> int:
    """Return a checksum of a row, so that no damage of the database is believed."""
    return zlib.crc32(repr(tuple(row)).encode("utf-8", "replace"))


# Where shardctl keeps what can be made again: counts of files, and what `verify` found.


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


# Counts of a layout that `index` wrote before, by the sizes and versions of its files.


class EarlierCounts:
    """What a layout says of its files; a file of another size or version is not known.

    A layout does not say whether contents were checked, so it serves those who count alone.
    """

    def __init__(self, layout: IndexedLayout) -> None:
        self._layout = layout
        # Hashes take a third of the memory of paths; what one finds is compared.
        self._places = {hash(path): place for place, path in enumerate(layout.paths())}

    def find(self, task: FileToCount) -> FileContents | None:
        """Return what the layout says of a file, None where it says nothing of it as it is."""
        layout = self._layout
        place = None if task.checksums else self._places.get(hash(task.file.path))
        if place is None or layout.dataset.file_format != task.file_format:
            return None
        kept = layout.file(place)
        if kept != task.file or not kept.version:
            return None
        return FileContents(
            num_records=layout.num_records(place),
            num_bytes=kept.num_bytes,
            compression=layout.compression if kept.num_bytes else None,
        )


def read_earlier(path: str) -> IndexedLayout | None:
    """Return the layout that is about to be replaced, None where no such file of ours is there."""
    from shardctl.readers.index.document import read_index_file

    if path == "-" or not os.path.isfile(path):
        return None
    try:
        return read_index_file(Path(path))
    except DatasetError:  # whatever it is, it is about to be replaced
        return None
