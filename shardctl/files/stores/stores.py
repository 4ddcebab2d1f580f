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
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

from shardctl.core.text import quoted
from shardctl.errors import DatasetError, MissingDependencyError, NotThereError
from shardctl.files.file_text import os_reason, read_file, subfolder_names
from shardctl.files.stores.store import Store, StoredFile

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
        from shardctl.files.stores.transfer.failures import chained

        raise DatasetError(chained(path))
    from shardctl.files.stores.public_store import PublicStore

    return PublicStore(_remote(scheme[1].lower(), path))


def _remote(scheme: str, path: str) -> Store:
    if path.startswith("hf://buckets/") or scheme not in _KNOWN:
        _known_to_fsspec(scheme, path)
        return _store("fsspec", scheme)
    return _store(scheme, scheme)


_KNOWN = ("http", "https", "s3", "s3a", "gs", "gcs", "hf")


@cache
def _store(kind: str, scheme: str) -> Store:
    """Return the store of a kind; its libraries are imported when it is first asked."""
    if kind in ("http", "https"):
        from shardctl.files.stores.places.web_server import WebServerStore

        return WebServerStore()
    if kind in ("s3", "s3a"):
        from shardctl.files.stores.places.s3 import S3Store

        return S3Store()
    if kind in ("gs", "gcs"):
        from shardctl.files.stores.places.gcs import GcsStore

        return GcsStore()
    if kind == "hf":
        from shardctl.files.stores.places.hub import HubStore

        return HubStore()
    from shardctl.files.stores.places.other import OtherStore

    return OtherStore(scheme)


def _known_to_fsspec(scheme: str, path: str) -> None:
    try:
        from fsspec.registry import known_implementations, registry
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {scheme}:// needs a package: pip install fsspec"
        ) from error
    if scheme not in known_implementations and scheme not in registry:
        from shardctl.files.stores.transfer.failures import shown

        raise DatasetError(
            f"{shown(path)}: nobody knows the scheme {scheme}://; there are gs, s3, hf, http, https"
            " and those of fsspec"
        )


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

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several ranges."""
        return [self.read(start, stop) for start, stop in ranges]

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
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        found = entry.stat()
                        if stat.S_ISREG(found.st_mode):
                            yield _stored(entry.path, found)
        except FileNotFoundError as error:
            raise NotThereError(f"cannot read {quoted(folder, 200)}: no such folder") from error
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else "no such folder"
            raise DatasetError(f"cannot read {quoted(folder, 200)}: {reason}") from error

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""
        return subfolder_names(Path(folder))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a regular file."""
        return read_file(Path(path), max_num_bytes=max_num_bytes)

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[LocalSource]:
        """Open a file; one that changed since it was listed is refused, before and after."""
        try:
            # What was put there since then, a FIFO, must not be waited for.
            opened = open(os.open(file.path, _OPEN), "rb", buffering=0)  # noqa: SIM115
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            raise DatasetError(f"cannot read {quoted(file.path, 200)}: {reason}") from error
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
