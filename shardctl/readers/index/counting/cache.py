"""Counts that are known from earlier runs, in a database under the user's cache folder.

A count is taken for a file of the same path, size and version, whose version says something; one
whose contents were checked too serves those who only count. Several processes may use it at once.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from shardctl.core.text import printable, quoted
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import Compression, FileContents

FILENAME = "counts.sqlite"
_APPLICATION = 0x73686364  # "shcd", in the head of the file
_SCHEMA = 1
_PATIENCE = 5.0  # seconds that a lock of another process is waited for
_EVERY = 1.0  # seconds between two writings
_MOST_WAITING = 20_000  # counts that wait in memory
_MOST_BYTES = 1 << 30  # of the database: about five million files
_DAYS = 90  # a folder that is not asked for so long is forgotten
_DAY = 86_400

_TABLES = """
CREATE TABLE IF NOT EXISTS folders(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB UNIQUE, used INTEGER);
CREATE TABLE IF NOT EXISTS files(
    folder INTEGER, name BLOB, format TEXT, checksums INTEGER, num_bytes INTEGER, version TEXT,
    num_records INTEGER, compression TEXT, seal INTEGER,
    PRIMARY KEY(folder, name, format, checksums)) WITHOUT ROWID;
"""
_FIND = (
    "SELECT name, checksums, num_bytes, version, num_records, compression, seal FROM files "
    "WHERE folder = (SELECT id FROM folders WHERE path = ?) AND format = ? AND checksums >= ? "
    "AND name IN (%s)"
)
_USE = (
    "INSERT INTO folders(path, used) VALUES (?, ?) "
    "ON CONFLICT(path) DO UPDATE SET used = excluded.used"
)
_KEEP = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Nothing can be written; what is there can be read.
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_FULL")
_AT_ONCE = 900  # names in a query; SQLite takes 999 values at least
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class KnownCounts:
    """The counts in a folder's database; without a folder, or where it fails, none are known.

    `warnings` says in a line each what went wrong; counting goes on without it.
    """

    def __init__(self, folder: Path | None) -> None:
        self.warnings: list[str] = []
        self._path = Path() if folder is None else folder / FILENAME
        self._database: sqlite3.Connection | None = None
        self._waiting: list[tuple[FileToCount, FileContents]] = []
        self._used: set[bytes] = set()
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
        self.close()

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        """Return what is known of files, None for each of which nothing is."""
        found: list[FileContents | None] = [None] * len(files)
        for places in alike(files):
            if self._database is None:
                break
            try:
                rows = self._rows(files, places)
            except sqlite3.Error as error:
                self._failed(error)
                break
            for place in places:
                found[place] = contents_in(rows, files[place])
        return found

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a file holds; it is written with others, every second."""
        whole = contents.damage is None and contents.num_records is not None
        if self._database is None or not self._writable or not whole or not task.file.version:
            return
        self._waiting.append((task, contents))
        waited = time.monotonic() - self._written
        if waited > _EVERY or len(self._waiting) >= _MOST_WAITING:
            self._write()

    def close(self) -> None:
        """Write what waits, and forget what nobody asked for in a long time."""
        if self._writable and (self._waiting or self._used):
            self._write(last=True)
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> sqlite3.Connection | None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        try:
            if not _is_empty(database):
                application, schema = (
                    int(database.execute(f"PRAGMA {name}").fetchone()[0])
                    for name in ("application_id", "user_version")
                )
                if application == _APPLICATION and schema == _SCHEMA:
                    return database
                if application == _APPLICATION and schema > _SCHEMA:
                    self._say("a newer shardctl writes it")
                    database.close()
                    return None
                raise sqlite3.DatabaseError("it is not one of shardctl's")
            database.execute("BEGIN IMMEDIATE")
            if _is_empty(database):  # no other process was first
                for statement in _TABLES.split(";")[:-1]:
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {_APPLICATION}")
                database.execute(f"PRAGMA user_version = {_SCHEMA}")
            database.execute("COMMIT")
        except BaseException:
            database.close()
            raise
        return database

    def _rows(
        self, files: Sequence[FileToCount], places: Sequence[int]
    ) -> dict[bytes, list[tuple[object, ...]]]:
        """Return what is kept of files in a folder, by their names."""
        assert self._database is not None
        names = [name_of(files[place]) for place in places]
        one = files[places[0]]
        folder = folder_of(one)
        self._used.add(folder)
        rows: dict[bytes, list[tuple[object, ...]]] = {}
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            query = _FIND % ",".join("?" * len(some))
            asked = (folder, one.file_format, int(one.checksums), *some)
            for name, *row in self._database.execute(query, asked):
                rows.setdefault(name, []).append(tuple(row))
        return rows

    def _write(self, *, last: bool = False) -> None:
        assert self._database is not None
        today = int(time.time()) // _DAY
        self._written = time.monotonic()
        waiting, used = self._waiting, self._used
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                used = used | {folder_of(task) for task, _ in waiting}
                old = self._database.execute
                for folder in used:
                    found = old("SELECT used FROM folders WHERE path = ?", (folder,)).fetchone()
                    if found is None or found[0] != today:
                        old(_USE, (folder, today))
                ids = dict(old("SELECT path, id FROM folders").fetchall())
                self._database.executemany(_KEEP, rows_to_keep(waiting, ids))
                self._bound(today)
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._database.execute("ROLLBACK")
                raise
            self._waiting, self._used = [], set()
        except sqlite3.Error as error:
            busy = _name_of(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")
            if busy and not last and len(waiting) < _MOST_WAITING:
                return  # another process writes, for long; the next second is soon
            self._failed(error)

    def _bound(self, today: int) -> None:
        """Forget folders that nobody asked for in a long time, and the oldest of too many."""
        assert self._database is not None
        execute = self._database.execute
        old = execute("SELECT id FROM folders WHERE used < ?", (today - _DAYS,)).fetchall()
        for (folder,) in old:
            self._forget(folder)
        while self._num_bytes() > _MOST_BYTES:
            oldest = execute("SELECT id FROM folders ORDER BY used, id LIMIT 1").fetchone()
            if oldest is None:
                return
            self._forget(oldest[0])

    def _forget(self, folder: int) -> None:
        assert self._database is not None
        self._database.execute("DELETE FROM files WHERE folder = ?", (folder,))
        self._database.execute("DELETE FROM folders WHERE id = ?", (folder,))

    def _num_bytes(self) -> int:
        """Return the bytes in use; what was freed is used again."""
        assert self._database is not None
        pages, free, size = (
            int(self._database.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _failed(self, error: sqlite3.Error) -> None:
        """Go on without the database, or without writing to it; a damaged one is put aside."""
        name = _name_of(error)
        self._waiting, self._writable = [], False
        if name.startswith(_UNWRITABLE):
            self._say(str(error))
            return
        if self._database is not None:
            self._database.close()
            self._database = None
        if name.startswith(_DAMAGED) or type(error) is sqlite3.DatabaseError:
            aside = self._path.with_suffix(".damaged")
            with suppress(OSError):
                os.replace(self._path, aside)
            self._say(f"{error}; it was put aside as {aside.name}")
        else:
            self._say(str(error))

    def _say(self, why: str) -> None:
        path = quoted(str(self._path), 200)
        self.warnings.append(f"counts are not kept in {path}: {printable(why, 200)}")


def _is_empty(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _name_of(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "")


# What the database of counts keeps of a file, sealed, so that no damage of it is believed.

_COMPRESSIONS: dict[object, Compression] = {"GZIP": "GZIP", "ZLIB": "ZLIB"}


def folder_of(task: FileToCount) -> bytes:
    return _encoded(task.file.path[: -len(_base(task)) or None])


def name_of(task: FileToCount) -> bytes:
    return _encoded(_base(task))


def _base(task: FileToCount) -> str:
    return task.file.path.rpartition("/")[2]


def _encoded(path: str) -> bytes:
    """Return a path as bytes, those of names that are no UTF-8 too."""
    return path.encode("utf-8", "surrogatepass")


def alike(files: Sequence[FileToCount]) -> Iterable[list[int]]:
    """Return the places of files that are looked up by one query."""
    places: dict[tuple[bytes, str, bool], list[int]] = {}
    for place, task in enumerate(files):
        places.setdefault((folder_of(task), task.file_format, task.checksums), []).append(place)
    return places.values()


def rows_to_keep(
    counted: Iterable[tuple[FileToCount, FileContents]], ids: Mapping[bytes, int]
) -> Iterator[tuple[object, ...]]:
    for task, contents in counted:
        row = (
            int(task.checksums),
            task.file.num_bytes,
            task.file.version,
            contents.num_records,
            contents.compression,
        )
        folder = ids[folder_of(task)]
        yield (folder, name_of(task), task.file_format, *row, _seal(task, row))


def contents_in(
    rows: Mapping[bytes, Sequence[tuple[object, ...]]], task: FileToCount
) -> FileContents | None:
    """Return what is kept of a file, None where that is of another version of it."""
    for *row, seal in rows.get(name_of(task), ()):
        checksums, num_bytes, version, num_records, compression = row
        same = (num_bytes, version) == (task.file.num_bytes, task.file.version)
        if version and same and seal == _seal(task, row) and type(num_records) is int:
            return FileContents(
                num_records=num_records,
                num_bytes=task.file.num_bytes,
                checked="checksums" if checksums else "framing",
                compression=_COMPRESSIONS.get(compression),
            )
    return None


def _seal(task: FileToCount, row: Sequence[object]) -> int:
    """Return a checksum of a row and its path, so that no damage of the database is believed."""
    return zlib.crc32(repr((task.file.path, task.file_format, *row)).encode("utf-8", "replace"))


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
