"""Remote places: the store of a scheme, which names its files without passwords."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from itertools import repeat

from shardctl.base.text import full_url, public_url, query_mark
from shardctl.stores.store import ByteSource, Store, StoredFile


def public_store(scheme: str) -> PublicStore:
    """Return the store of a scheme, by whose paths nobody logs in."""
    return PublicStore(_remote(scheme))


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

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path, see `Store`."""
        full = _full(path)
        file = self.inner.status(full)
        return None if file is None else _public(file, query_mark(full))

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder, see `Store`."""
        return self.inner.is_folder(_full(path))

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files right in a folder, see `Store`."""
        full = _full(folder)
        found = self.inner.scan(full)
        return (
            found if full == public_url(folder) else map(_public, found, repeat(query_mark(full)))
        )

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, see `Store`."""
        return self.inner.subfolders(_full(folder))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file, see `Store`."""
        return self.inner.read(_full(path), max_num_bytes=max_num_bytes)

    def open(self, file: StoredFile) -> AbstractContextManager[ByteSource]:
        """Open a file, see `Store`."""
        full = _full(file.path)
        version = file.version.removesuffix(query_mark(full) or "\0")
        return self.inner.open(replace(file, path=full, version=version))


def _full(path: str) -> str:
    return full_url(public_url(path))


def _public(file: StoredFile, mark: str) -> StoredFile:
    """Return a file by its public path; its version tells which query chose it."""
    version = file.version and file.version + mark
    return replace(file, path=public_url(file.path), version=version)
