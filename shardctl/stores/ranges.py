"""A remote file as ranges of its bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, cast

from shardctl.errors import DatasetError
from shardctl.stores.failures import shown

if TYPE_CHECKING:
    from shardctl.stores.store import ByteSource, StoredFile

# A file that is read here and there is read in blocks; its end, where footers are, in one.
_BLOCK, _TAIL = 128 << 10, 256 << 10

Fetch = Callable[[int, int], bytes]


class RemoteSource:
    """An open remote file.

    Args:
        file: as it was listed.
        fetch: returns the bytes [start, stop) of it, or raises; asked for none beyond its end.
    """

    def __init__(self, file: StoredFile, fetch: Fetch) -> None:
        self._stored, self._fetch = file, fetch
        self.num_bytes = file.num_bytes
        self.local_path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of the file, up to its end."""
        start, stop = max(start, 0), min(stop, self.num_bytes)
        if start >= stop:
            return b""
        data = self._fetch(start, stop)
        if len(data) != stop - start:
            name = shown(self._stored.path)
            raise DatasetError(f"cannot read {name}: {len(data)} bytes came, not {stop - start}")
        return data

    def file(self) -> BinaryIO:
        """Return it as a seekable file that keeps the blocks it read last."""
        return cast(BinaryIO, RangeFile(self))


class RangeFile(io.RawIOBase):
    """A seekable file over a source; each read is answered in full, as from a disk.

    told: is called with the bytes that are read of the source, `num_bytes_read` in all.
    """

    def __init__(self, source: ByteSource, told: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.num_bytes_read = 0
        self._source, self._told, self._at = source, told, 0
        self._blocks: list[tuple[int, bytes]] = []

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

    def readall(self) -> bytes:
        return self._bytes(self._source.num_bytes)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._bytes(self._at + len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _bytes(self, stop: int) -> bytes:
        start, stop = self._at, min(stop, self._source.num_bytes)
        if start >= stop:
            return b""
        held = next((held for held in self._blocks if _holds(held, start, stop)), None)
        if held is None:
            first, last = start, max(stop, min(start + _BLOCK, self._source.num_bytes))
            if self._source.num_bytes - start <= _TAIL:
                first, last = max(self._source.num_bytes - _TAIL, 0), self._source.num_bytes
            held = (first, self._source.read(first, last))
            self.num_bytes_read += len(held[1])
            if self._told is not None:
                self._told(len(held[1]))
            # Two are kept: the end of the file, and where it is read.
            self._blocks = [*self._blocks[-1:], held]
        self._at = stop
        first, data = held
        return data[start - first : stop - first]


def _holds(held: tuple[int, bytes], start: int, stop: int) -> bool:
    return held[0] <= start and stop <= held[0] + len(held[1])
