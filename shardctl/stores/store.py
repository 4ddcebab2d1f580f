"""A place of files, its listings, and ranges of bytes of a file; what every kind of place answers.

`store_of(path)` finds the store of a path by its scheme. Paths are whole texts here, `gs://bucket/a`
or `/data/a`, never `pathlib.Path`, which makes one slash of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """A file as a listing shows it.

    version: text that is another whenever the contents are: `mtime:1763798400000000000` (ns) on a
        disk, `etag:..`, `generation:..` in a bucket; "" where the place says nothing.
    """

    path: str
    num_bytes: int
    version: str = ""


class ByteSource(Protocol):
    """The bytes of one open file; those it had when it was listed, or an error.

    local_path: where C++ libraries can open it themselves, None of a remote file.
    """

    num_bytes: int
    local_path: str | None

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop); fewer only where a local file became shorter."""

    def file(self) -> BinaryIO:
        """Return it as a seekable file, for libraries that take one."""


class Store(Protocol):
    """A place of files. Errors of the place are `DatasetError`s of one line, without credentials.

    Args named `path` are whole paths or URLs.
    """

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path, None where there is none (a folder is none)."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder, or the beginning of the names of objects."""

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files right in a folder, in no order, page by page."""

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file, or raise DatasetError."""

    def open(self, file: StoredFile) -> AbstractContextManager[ByteSource]:
        """Open a file that was listed.

        Raises:
            DatasetError: it is gone, or another (version, size) than was listed; of remote files
                this may be noticed when they are read, or when what read them is done.
        """
