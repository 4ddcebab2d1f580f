"""Which store has the files of a path?

Remote places are reached as fsspec reaches them, whose file systems `etils.epath` uses too:
`pip install tensorflow-datasets` brings fsspec along (etils[epath] asks for it), and a login that
works for one works for the other. Not through epath itself: it tells no versions and reads no
ranges, only files that read ahead; and where TensorFlow is installed it asks tf.io.gfile instead,
which knows gs:// alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

from shardctl.base.text import full_url, public_url, query_mark, quoted
from shardctl.errors import DatasetError
from shardctl.stores.file_text import read_file, reading, subfolder_names
from shardctl.stores.store import ByteSource, Store, StoredFile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(::.*)?://")
_ONE_SLASH = re.compile(r"(?:^|/)[a-z][a-z0-9]+:/[^/]")
A_SLASH_LOST = "a URL has two slashes, of which pathlib makes one: give it as text"


def is_remote(path: str) -> bool:
    """Return whether a path names its scheme.

    >>> is_remote("gs://bucket/data"), is_remote("data/mnist")
    (True, False)
    """
    return _SCHEME.match(path) is not None


def has_lost_a_slash(path: str) -> bool:
    """Return whether a path, or one made absolute, is what pathlib makes of a URL.

    >>> [has_lost_a_slash(path) for path in ("gs:/bucket/a", "/home/me/s3:/bucket", "C:/a", "a:b")]
    [True, True, False, False]
    """
    return _ONE_SLASH.search(path) is not None


def as_bytes(text: str) -> bytes:
    """Return the bytes of a path, by which TensorFlow and `LC_ALL=C ls` sort.

    >>> sorted(["Z", "a", "é"], key=as_bytes)
    ['Z', 'a', 'é']
    """
    return text.encode("utf-8", "surrogateescape")


def split_path(path: str) -> tuple[str, str]:
    r"""Return the folder of a path, with the slash at its end, and the name behind it.

    >>> split_path("gs://bucket/data/a"), split_path("a")
    (('gs://bucket/data/', 'a'), ('', 'a'))
    """
    at = path.rfind("/") + 1
    if os.sep != "/" and not is_remote(path):
        at = max(at, path.rfind(os.sep) + 1)
    return path[:at], path[at:]


def store_of(path: str) -> Store:
    """Return the store of a path, by its scheme.

    Raises:
        MissingDependencyError: the package that reaches the place is not installed.
        DatasetError: nobody knows the scheme, or there are several.
    """
    scheme = _SCHEME.match(path)
    if scheme is None:
        return LocalStore()
    if scheme[2]:
        from shardctl.stores.failures import chained

        raise DatasetError(chained(path))
    return PublicStore(_remote(scheme[1].lower()))


@cache
def _remote(scheme: str) -> Store:
    """Return the store of a scheme; its libraries are imported when it is first asked."""
    if scheme in ("http", "https"):
        from shardctl.stores.web_server import WebServerStore

        return WebServerStore()
    from shardctl.stores.fsspec_store import FsspecStore

    return FsspecStore(scheme)


class PublicStore:
    """Another store, for those who name its files as all may read.

    So no path that comes out of it, into a message, a cache or a file, has a password.
    """

    def __init__(self, place: Store) -> None:
        self.place = place

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path, see `Store`."""
        full = _full(path)
        file = self.place.status(full)
        return None if file is None else _public(file, query_mark(full))

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder, see `Store`."""
        return self.place.is_folder(_full(path))

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files right in a folder, see `Store`."""
        full = _full(folder)
        found = self.place.scan(full)
        return (
            found if full == public_url(folder) else map(_public, found, repeat(query_mark(full)))
        )

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, see `Store`."""
        return self.place.subfolders(_full(folder))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file, see `Store`."""
        return self.place.read(_full(path), max_num_bytes=max_num_bytes)

    def open(self, file: StoredFile) -> AbstractContextManager[ByteSource]:
        """Open a file, see `Store`."""
        full = _full(file.path)
        version = file.version.removesuffix(query_mark(full) or "\0")
        return self.place.open(replace(file, path=full, version=version))


def _full(path: str) -> str:
    return full_url(public_url(path))


def _public(file: StoredFile, mark: str) -> StoredFile:
    """Return a file by its public path; its version tells which query chose it."""
    version = file.version and file.version + mark
    return replace(file, path=public_url(file.path), version=version)


# The disks of this machine.

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class LocalSource:
    """An open file of a disk."""

    def __init__(self, file: BinaryIO, path: str, num_bytes: int) -> None:
        self._file = file
        self.local_path: str | None = path
        self.num_bytes = num_bytes

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop), fewer where the file became shorter."""
        self._file.seek(start)
        return self._file.read(stop - start)

    def file(self) -> BinaryIO:
        """Return the open file."""
        return self._file


class LocalStore:
    """Files and folders of this machine, by their paths."""

    def status(self, path: str) -> StoredFile | None:
        """Return the regular file at a path, None where there is none."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return _stored(path, found) if stat.S_ISREG(found.st_mode) else None

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return os.path.isdir(path)

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the regular files right in a folder, in no order; links to nowhere are left out."""
        with reading(folder, "no such folder"), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    if stat.S_ISREG(found.st_mode):
                        yield _stored(entry.path, found)

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""
        return subfolder_names(Path(folder))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a regular file."""
        return read_file(Path(path), max_num_bytes=max_num_bytes)

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[LocalSource]:
        """Open a file; one that changed since it was listed is refused, before and after."""
        with reading(file.path):
            # What was put there since then, a FIFO, must not be waited for.
            opened = open(os.open(file.path, _OPEN), "rb", buffering=0)  # noqa: SIM115
        with opened:
            _check_same(file, os.fstat(opened.fileno()))
            yield LocalSource(opened, file.path, file.num_bytes)
        # By its path: libraries open it themselves, and another file may be there by now.
        try:
            found = os.stat(file.path)
        except OSError as error:
            raise DatasetError(f"{quoted(file.path, 200)} vanished while it was read") from error
        _check_same(file, found)


def _check_same(file: StoredFile, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or _stored(file.path, found) != file:
        raise DatasetError(f"{quoted(file.path, 200)} changed while it was read")


def _stored(path: str, found: os.stat_result) -> StoredFile:
    return StoredFile(path=path, num_bytes=found.st_size, version=f"mtime:{found.st_mtime_ns}")
