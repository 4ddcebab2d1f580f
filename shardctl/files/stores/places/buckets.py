"""What stores have in common whose listings say all of a file: in pages, by folders."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.errors import DatasetError, NotThereError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.failures import shown
from shardctl.files.stores.transfer.ranges import RemoteSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A part of a listing: files, and the folders beside them, both by their whole paths."""

    files: list[StoredFile]
    folders: list[str]


class ListedStore(ABC):
    """A store whose listings tell the size and the version of every file."""

    @abstractmethod
    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path, None where there is none."""

    @abstractmethod
    def pages(self, folder: str, *, at_most: int | None = None) -> Iterator[Page]:
        """Yield what is right in a folder; pages of `at_most` entries where that is all needed.

        Raises:
            DatasetError: the bucket or repository is not there, or refuses.
        """

    @abstractmethod
    def fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of a file as it was listed, all of them."""

    def is_folder(self, path: str) -> bool:
        """Return whether there is anything below a path, or it is a bucket."""
        if root_of(path) == path.rstrip("/"):
            return all(True for _ in self.pages(path, at_most=2))
        return any(page.files or page.folders for page in self.pages(path, at_most=2))

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files right in a folder.

        Raises:
            DatasetError: there is nothing below it, and it is no bucket.
        """
        empty = True
        for page in self.pages(folder):
            empty = empty and not page.files and not page.folders
            yield from page.files
        if empty and root_of(folder) != folder.rstrip("/"):
            raise NotThereError(f"cannot read {shown(folder)}: no such folder")

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""
        pages = self.pages(folder)
        paths = {path for page in pages for path in page.folders}
        names = (path.rstrip("/").rpartition("/")[2] for path in paths)
        return sorted(name for name in names if name and not name.startswith("."))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file."""
        file = self.status(path)
        if file is None:
            raise NotThereError(f"cannot read {shown(path)}: no such file")
        if file.num_bytes > max_num_bytes:
            raise DatasetError(f"{shown(path)} is larger than {max_num_bytes} bytes, the most read")
        with self.open(file) as source:
            return source.read(0, file.num_bytes)

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[RemoteSource]:
        """Open a file; one that changed since it was listed is refused when it is read."""
        yield RemoteSource(file, lambda start, stop: self.fetch(file, start, stop))


def bucket_and_key(path: str) -> tuple[str, str]:
    """Return the bucket and the key of a path.

    >>> bucket_and_key("gs://bucket/data/a"), bucket_and_key("s3://bucket")
    (('bucket', 'data/a'), ('bucket', ''))
    """
    bucket, _, key = path.partition("://")[2].partition("/")
    if not bucket:
        raise DatasetError(f"{shown(path)} names no bucket")
    if "@" in bucket:
        raise DatasetError(
            f"{shown(path)}: keys of a login are taken from variables, not from URLs"
        )
    return bucket, key


def root_of(path: str) -> str:
    """Return the bucket of a path with its scheme, as the path writes it.

    >>> root_of("s3a://bucket/data/a")
    's3a://bucket'
    """
    scheme, mark, rest = path.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0]}"


def prefix_of(path: str) -> tuple[str, str]:
    """Return the bucket of a folder, and how the keys of all that is in it begin."""
    bucket, key = bucket_and_key(path)
    return bucket, key if not key or key.endswith("/") else f"{key}/"
