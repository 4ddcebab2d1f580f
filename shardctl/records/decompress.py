"""Record files read forwards: in windows with jumps, unpacked as a stream, or by a partial copy."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from shardctl.base.install import to_install
from shardctl.base.text import printable
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Damage, DamagedError, FileContents, Report, no_report
from shardctl.stores.store import ByteSource

# What is read ahead of records that are so near to each other, what is read for a header alone, and
# at first of a larger file, of which nothing is known yet.
_LOCAL = 1 << 18, 1 << 14, 0, 1 << 12
# In a bucket a request costs as much time as some megabytes, so that jumps of less save nothing.
_REMOTE = 1 << 22, 1 << 23, 1 << 14, 1 << 18


class Bytes(Protocol):
    """Bytes by their places, which are asked for in rising order.

    num_bytes_read: of the file, as it is stored.
    """

    num_bytes_read: int

    def at(self, position: int, size: int) -> bytes:
        """Return so many bytes from a place on, fewer where the bytes end."""

    def is_within(self, position: int) -> bool:
        """Return whether the bytes reach at least up to a place."""


class Window:
    """A part of a source, moved on as its bytes are asked for.

    It learns from where it is asked how far apart the places are.
    """

    def __init__(
        self, source: ByteSource, report: Report = no_report, *, ahead: int | None = None
    ) -> None:
        """Begin a window; `ahead` is what is read at a time where all that counts is near."""
        self.num_bytes_read = 0
        self._source, self._report_bytes = source, report
        self._buffer, self._start, self.num_asked = b"", 0, 0
        usual, self._near, self._least, self._first = _LOCAL if source.local_path else _REMOTE
        self._ahead = ahead or usual
        # A file that fits into one request is read by one.
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
        # The innermost loop of counting: no method call a record. A header that is cut or damaged
        # has the length NO_LENGTH, so that it ends the loop.
        while (stop := inside + frame + lengths[buffer[inside : inside + header]]) <= num_bytes:
            inside = stop
            num_asked += 1
        self.num_asked = num_asked
        return self._start + inside

    def is_within(self, position: int) -> bool:
        """Return whether the file, as it was listed, reaches at least up to a place."""
        return position <= self._source.num_bytes

    def _filled(self, position: int, size: int) -> bytes:
        # Whether what was asked so far lies close together on average: then it pays to read ahead.
        near = position < self._near * self.num_asked
        ahead = self._first if self.num_asked == 1 else self._ahead
        wanted = max(size, ahead if near else self._least)
        stop = min(position + wanted, self._source.num_bytes)
        inside = position - self._start
        # What is left of the old buffer is kept, so that no byte is read twice.
        known = self._buffer[inside:] if 0 <= inside < len(self._buffer) else b""
        begin = position + len(known)
        more = self._source.read(begin, stop) if begin < stop else b""
        self.num_bytes_read += len(more)
        self._report_bytes(len(more))
        self._buffer, self._start = known + more, position
        return self._buffer[:size]


# A local file with what is needed of a remote one, for libraries that open files themselves.

_PIECE = 1 << 23
_LARGE = 1 << 24
_at_once = threading.BoundedSemaphore(2)  # large copies, however many files are counted at once


@contextlib.contextmanager
def partial_copy(
    source: ByteSource, start: int, stop: int, *, report: Report = no_report
) -> Iterator[str]:
    """Give the path of a temporary file as long as the source, with its bytes [start, stop).

    The rest is a hole, which takes no room and reads as zeros; whoever opens it has to notice zeros
    by checksums. Two large copies are made at a time, no more.
    """
    with contextlib.ExitStack() as stack:
        if stop - start > _LARGE:
            stack.enter_context(_at_once)
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="shardctl-"))
        # The same length, so that offsets in the footer are right.
        copy.truncate(source.num_bytes)
        copy.seek(start)
        for begin in range(start, stop, _PIECE):
            piece = source.read(begin, min(begin + _PIECE, stop))
            copy.write(piece)
            report(len(piece))
        copy.flush()
        yield copy.name


# Files that were compressed as a whole, unpacked as a stream; nothing is written to disk.

_LOCAL_PIECE, _REMOTE_PIECE = 1 << 16, 1 << 22
# What is unpacked at a time, so that a small file that unpacks to gigabytes does not fill the
# memory: zstd makes 32,768 times its size of it at most.
_PACKED_PIECE = 1 << 12

# How compressed files begin: RFC 1952 2.3.1, RFC 8878 3.1.1.
_SIGNATURES = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def packed_as(head: bytes) -> str | None:
    r"""Return how a file was compressed that begins so, None for not, or not so that it shows.

    >>> packed_as(b"\x1f\x8b\x08\0"), packed_as(b"train/0001.jpg")
    ('gzip', None)
    """
    return next((name for begin, name in _SIGNATURES.items() if head.startswith(begin)), None)


class Forwards:
    """Bytes that come one piece after the other, by their places, which only rise."""

    def __init__(self) -> None:
        self._buffer, self._start, self._asked = b"", 0, 0

    def at(self, position: int, size: int) -> bytes:
        """Return so many bytes from a place on, fewer where they end."""
        self._reach(position, size)
        inside = position - self._start
        return self._buffer[inside : inside + size]

    def is_within(self, position: int) -> bool:
        """Return whether the bytes reach at least up to a place; they are unpacked up to there."""
        self._reach(position, 0)
        return self._start + len(self._buffer) >= position

    def _next(self) -> bytes:
        """Return the next bytes, none at the end."""
        raise NotImplementedError

    def _reach(self, position: int, size: int) -> None:
        """Unpack until the buffer begins at a place, or before it, and holds so many bytes."""
        self._asked = position
        if self._start + len(self._buffer) >= position + size:
            return
        # Pieces in front of the place are unpacked and dropped.
        while self._start + len(self._buffer) < position:
            self._start += len(self._buffer)
            self._buffer = self._next()
            if not self._buffer:
                return
        pieces = [self._buffer[position - self._start :]]
        self._start, length = position, len(pieces[0])
        while length < size and (more := self._next()):
            pieces.append(more)
            length += len(more)
        self._buffer = b"".join(pieces)


class Unpacked(Forwards):
    """The bytes inside a compressed file; the first stream of it alone, which is mostly all."""

    def __init__(self, source: ByteSource, kind: str, report: Report = no_report) -> None:
        super().__init__()
        self.num_bytes_read = 0
        self._source, self._report_bytes, self._kind = source, report, kind
        self._stream, self._refused = _decompressor(kind)
        self._waiting = memoryview(b"")

    def drain(self) -> int:
        """Unpack what is left, and return how many bytes of it are not zeros."""
        found, piece = 0, self._buffer[self._asked - self._start :] or self._next()
        while piece:
            found += len(piece) - piece.count(0)
            piece = self._next()
        self._buffer = b""
        return found

    def behind(self) -> bytes:
        """Return what follows the end of the stream, up to 64 KiB of it, zeros left out."""
        # What the decompressor was given behind its end, and what was not read from the file yet.
        rest = bytes(self._stream.unused_data) + self._waiting
        if self.num_bytes_read < self._source.num_bytes:
            stop = min(self.num_bytes_read + (1 << 16), self._source.num_bytes)
            rest += self._source.read(self.num_bytes_read, stop)
        return rest.strip(b"\0")

    def _next(self) -> bytes:
        """Return the next bytes, none at the end of the stream.

        Raises:
            DamagedError: the file ends inside the compressed stream, or it is no such stream.
        """
        stream = self._stream
        while not stream.eof:
            packed = self._waiting or memoryview(self._read())
            self._waiting = packed[_PACKED_PIECE:]
            try:
                more: bytes = stream.decompress(packed[:_PACKED_PIECE])
            except self._refused as error:
                said = printable(str(error), 100)
                raise DamagedError("broken", f"the {self._kind} file is damaged: {said}") from error
            if more:
                return more
            # Nothing came in, nothing came out, and the stream has not ended.
            if not packed and not stream.eof:
                raise DamagedError("cut", f"the {self._kind} file is cut off")
        return b""

    def _read(self) -> bytes:
        size = _LOCAL_PIECE if self._source.local_path is not None else _REMOTE_PIECE
        stop = min(self.num_bytes_read + size, self._source.num_bytes)
        packed = self._source.read(self.num_bytes_read, stop)
        self.num_bytes_read += len(packed)
        self._report_bytes(len(packed))
        return packed


def of_packed(
    source: ByteSource,
    packing: str,
    report: Report,
    count: Callable[[Unpacked], FileContents],
    *,
    lead: str,
    left: str,
    behind: str,
) -> FileContents:
    """Return what `count` finds in a compressed file; `lead` says that places are those inside.

    left, behind: what is wrong where bytes are left inside that were not counted, or follow it.
    """
    data = Unpacked(source, packing, report)
    found = count(data)
    damage = found.damage
    try:
        if damage is None and (text := left if data.drain() else behind if data.behind() else ""):
            damage = Damage(kind="broken", text=text)
        elif damage is not None and damage.byte is not None:
            damage = replace(damage, text=f"{lead}, {damage.text}", byte=None)
    except DamagedError as error:
        damage = error.contents.damage
    num_read = data.num_bytes_read
    return replace(found, num_bytes=source.num_bytes, num_bytes_read=num_read, damage=damage)


def _decompressor(kind: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what unpacks a stream, and what it raises of one that is damaged."""
    if kind == "gzip":
        # | 16: zlib's flag for a gzip header and trailer, whose checksum it verifies.
        return zlib.decompressobj(zlib.MAX_WBITS | 16), (zlib.error,)
    try:
        import zstandard
    except ImportError as error:
        raise MissingDependencyError(
            f"files compressed with zstd need a package: {to_install('zstandard')}"
        ) from error
    return zstandard.ZstdDecompressor().decompressobj(), (zstandard.ZstdError,)
