"""The interface of every place of files, and a remote file as ranges of its bytes.

Paths are whole texts here, `gs://bucket/a` or `/data/a`, never `pathlib.Path`, which makes one
slash of two. `store_of(path)` finds the store of a path by its scheme.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
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


# A remote file as ranges of its bytes.

_BLOCK = 128 << 10  # bytes that are read ahead where a file is read from its beginning on

Fetch = Callable[[int, int], bytes]


class RemoteSource:
    """An open remote file.

    Args:
        file: as it was listed.
        fetch: returns the bytes [start, stop) of it, all of them, or raises; asked for none beyond
            its end.
    """

    def __init__(self, file: StoredFile, fetch: Fetch) -> None:
        self._fetch, self.num_bytes = fetch, file.num_bytes
        self.local_path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of the file, up to its end."""
        start, stop = max(start, 0), min(stop, self.num_bytes)
        return self._fetch(start, stop) if start < stop else b""


class RangeFile(io.RawIOBase):
    """A seekable file over a source; each read is answered in full, as from a disk.

    report_read: is called with how many bytes were read of the source; `num_bytes_read` is all.
    """

    def __init__(
        self, source: ByteSource, report_read: Callable[[int], None] | None = None
    ) -> None:
        super().__init__()
        self.num_bytes_read = 0
        self._source, self._report_read, self._at = source, report_read, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.num_bytes}
        if begin[whence] + offset < 0:
            raise ValueError("negative seek position")
        self._at = begin[whence] + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        stop = min(self._at + len(buffer), self._source.num_bytes)
        data = self._source.read(self._at, stop) if self._at < stop else b""
        self.num_bytes_read += len(data)
        if self._report_read is not None:
            self._report_read(len(data))
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)


def seekable(source: ByteSource) -> BinaryIO:
    """Return a source as a seekable file, which is read in blocks, for libraries that take one."""
    return io.BufferedReader(RangeFile(source), _BLOCK)
