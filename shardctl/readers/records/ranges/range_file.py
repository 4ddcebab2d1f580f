"""A source as a file of which no byte is read that nobody asks for."""

from __future__ import annotations

import io

from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Told, untold


class RangeFile(io.RawIOBase):
    """A seekable file whose reads are those of the source, without anything read ahead.

    Libraries that read footers by it fetch the footer and no more.
    """

    def __init__(self, source: ByteSource, told: Told = untold) -> None:
        super().__init__()
        self.num_bytes_read = 0
        self._source, self._told, self._position = source, told, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place, and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.num_bytes}
        self._position = base[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the place."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes, all that are left where nobody says how many."""
        end = self._source.num_bytes
        stop = end if size is None or size < 0 else min(self._position + size, end)
        found = self._source.read(self._position, stop) if self._position < stop else b""
        self._position += len(found)
        self.num_bytes_read += len(found)
        self._told(len(found))
        return found
