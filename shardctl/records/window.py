"""A file that is read forwards, with jumps: little of it, or all of it where that is cheaper."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from shardctl.base.text import quoted
from shardctl.errors import DatasetError
from shardctl.records.contents import Told, untold
from shardctl.stores.store import ByteSource

# On a disk, what is read ahead of records so near to each other; else each header alone is read.
_AHEAD, _NEAR = 1 << 18, 1 << 14
# In a bucket a request costs as much time as some megabytes, so that jumps of less save nothing.
_REMOTE_AHEAD, _REMOTE_NEAR, _REMOTE_HEADER = 1 << 22, 1 << 23, 1 << 14
_FIRST, _REMOTE_FIRST = 1 << 12, 1 << 18  # of a larger file, of which nothing is known yet


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
        self._buffer, self._start, self.num_asked = b"", 0, 0
        remote = source.local_path is None
        self._ahead = ahead or (_REMOTE_AHEAD if remote else _AHEAD)
        self._near = _REMOTE_NEAR if remote else _NEAR
        self._least = _REMOTE_HEADER if remote else 0
        self._first = _REMOTE_FIRST if remote else _FIRST
        if ahead or source.num_bytes <= self._ahead:
            self._first = self._ahead

    def at(self, position: int, size: int) -> bytes:
        """Return so many bytes from a place on, fewer where the file ends."""
        self.num_asked += 1
        inside = position - self._start
        if inside >= 0 and inside + size <= len(self._buffer):
            return self._buffer[inside : inside + size]
        return self._filled(position, size)

    def hop(self, position: int, lengths: Mapping[bytes, int], header: int, frame: int) -> int:
        """Return the place behind the records from a place on that are whole in this part.

        A header of so many bytes says how long a record is without its frame. Each counts as asked.
        """
        buffer, inside, num_bytes = self._buffer, position - self._start, len(self._buffer)
        if inside < 0:
            return position
        num_asked = self.num_asked
        while (stop := inside + frame + lengths[buffer[inside : inside + header]]) <= num_bytes:
            inside = stop
            num_asked += 1
        self.num_asked = num_asked
        return self._start + inside

    def is_within(self, position: int) -> bool:
        """Return whether the file, as it was listed, goes on at least up to a place."""
        return position <= self._source.num_bytes

    def _filled(self, position: int, size: int) -> bytes:
        near = position < self._near * self.num_asked
        ahead = self._first if self.num_asked == 1 else self._ahead
        wanted = max(size, ahead if near else self._least)
        stop = min(position + wanted, self._source.num_bytes)
        inside = position - self._start
        known = self._buffer[inside:] if 0 <= inside < len(self._buffer) else b""
        begin = position + len(known)
        more = self._source.read(begin, stop) if begin < stop else b""
        self.num_bytes_read += len(more)
        self._told(len(more))
        self._buffer, self._start = known + more, position
        return self._buffer[:size]


# A local file with what is needed of a remote one, for libraries that open files themselves.

_PIECE = 1 << 23
_LEFT = 1 << 28  # bytes of the disk that are left to others
_LARGE = 1 << 24
_at_once = threading.BoundedSemaphore(2)  # large copies, however many files are counted at once


@contextlib.contextmanager
def partial_copy(
    source: ByteSource, start: int, stop: int, *, told: Told = untold
) -> Iterator[str]:
    """Give the path of a temporary file as long as the source, with its bytes [start, stop).

    The rest is a hole, which takes no room and reads as zeros; whoever opens it has to notice zeros
    by checksums. Two large copies are made at a time, no more.

    Raises:
        DatasetError: the disk of temporary files has too little room.
    """
    with contextlib.ExitStack() as stack:
        if stop - start > _LARGE:
            stack.enter_context(_at_once)
        folder = tempfile.gettempdir()
        if shutil.disk_usage(folder).free < stop - start + _LEFT:
            raise DatasetError(
                f"its library reads local files alone, and {quoted(folder, 200)} has no room for "
                f"{stop - start} bytes of it; TMPDIR may name another folder"
            )
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="shardctl-"))
        copy.truncate(source.num_bytes)
        copy.seek(start)
        for begin in range(start, stop, _PIECE):
            piece = source.read(begin, min(begin + _PIECE, stop))
            copy.write(piece)
            told(len(piece))
        copy.flush()
        yield copy.name
