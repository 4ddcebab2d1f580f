"""A file that is read forwards, with jumps: little of it, or all of it where that is cheaper."""

from __future__ import annotations

from typing import Protocol

from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Told, untold

# On a disk, what is read ahead of records so near to each other; else each header alone is read.
_AHEAD, _NEAR = 1 << 18, 1 << 14
# In a bucket a request costs as much time as some megabytes, so that jumps of less save nothing.
_REMOTE_AHEAD, _REMOTE_NEAR, _REMOTE_HEADER = 1 << 22, 1 << 23, 1 << 14


class Bytes(Protocol):
    """Bytes by their places, which are asked for in rising order.

    num_bytes_read: of the file, as it is stored.
    """

    num_bytes_read: int

    def at(self, position: int, size: int) -> bytes:
        """Return so many bytes from a place on, fewer where the bytes end."""

    def is_within(self, position: int) -> bool:
        """Return whether the bytes go on at least up to a place."""


class Window:
    """A part of a source, moved on as its bytes are asked for.

    It learns from where it is asked how far apart the places are.
    """

    def __init__(
        self, source: ByteSource, told: Told = untold, *, ahead: int | None = None
    ) -> None:
        """Begin a window; `ahead` is what is read at a time where all that counts is near."""
        self.num_bytes_read = 0
        self._source, self._told = source, told
        self._buffer, self._start, self._num_asked = b"", 0, 0
        remote = source.local_path is None
        self._ahead = ahead or (_REMOTE_AHEAD if remote else _AHEAD)
        self._near = _REMOTE_NEAR if remote else _NEAR
        self._least = _REMOTE_HEADER if remote else 0

    def at(self, position: int, size: int) -> bytes:
        """Return so many bytes from a place on, fewer where the file ends."""
        self._num_asked += 1
        inside = position - self._start
        if inside >= 0 and inside + size <= len(self._buffer):
            return self._buffer[inside : inside + size]
        return self._filled(position, size)

    def is_within(self, position: int) -> bool:
        """Return whether the file, as it was listed, goes on at least up to a place."""
        return position <= self._source.num_bytes

    def _filled(self, position: int, size: int) -> bytes:
        near = position < self._near * self._num_asked
        wanted = max(size, self._ahead if near else self._least)
        stop = min(position + wanted, self._source.num_bytes)
        inside = position - self._start
        known = self._buffer[inside:] if 0 <= inside < len(self._buffer) else b""
        begin = position + len(known)
        more = self._source.read(begin, stop) if begin < stop else b""
        self.num_bytes_read += len(more)
        self._told(len(more))
        self._buffer, self._start = known + more, position
        return self._buffer[:size]
