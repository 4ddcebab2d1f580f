"""Files that were compressed as a whole, unpacked as a stream; nothing is written to disk."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Any

from shardctl.base.text import printable
from shardctl.dataset.dataset import FindingKind
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Told, untold
from shardctl.stores.store import ByteSource

_LOCAL_PIECE, _REMOTE_PIECE = 1 << 16, 1 << 22
_UNPACKED_PIECE = 1 << 20  # what a piece may become at a time, however well it was packed

# How compressed files begin: RFC 1952 2.3.1, RFC 8878 3.1.1; the end of bzip2's is its block size.
_SIGNATURES = (
    ("gzip", b"\x1f\x8b\x08"),
    ("bzip2", b"BZh"),
    ("xz", b"\xfd7zXZ\0"),
    ("xz", b"\x5d\0\0\x80"),  # of LZMA utils, before there was a format
    ("zstd", b"\x28\xb5\x2f\xfd"),
)

_REFUSED = (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError)


class PackedError(Exception):
    """What was compressed cannot be unpacked; `kind` is "cut" or "broken"."""

    def __init__(self, kind: FindingKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def packed_as(head: bytes) -> str | None:
    r"""Return how a file was compressed that begins so, None for not, or not so that it shows.

    >>> packed_as(b"\x1f\x8b\x08\0"), packed_as(b"train/0001.jpg")
    ('gzip', None)
    """
    for name, signature in _SIGNATURES:
        if head.startswith(signature):
            return None if name == "bzip2" and head[4:10] != b"1AY&SY" else name
    return None


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
        """Return whether the bytes go on at least up to a place; they are unpacked up to there."""
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

    def __init__(self, source: ByteSource, kind: str, told: Told = untold) -> None:
        super().__init__()
        self.num_bytes_read = 0
        self._source, self._told, self._kind = source, told, kind
        self._stream, self._waiting = _decompressor(kind), b""

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
        rest: bytes = getattr(self._stream, "unused_data", b"")
        if self.num_bytes_read < self._source.num_bytes:
            stop = min(self.num_bytes_read + (1 << 16), self._source.num_bytes)
            rest += self._source.read(self.num_bytes_read, stop)
        return rest.strip(b"\0")

    def _next(self) -> bytes:
        """Return the next bytes, none at the end of the stream.

        Raises:
            PackedError: the file ends inside the compressed stream, or it is no such stream.
        """
        stream = self._stream
        while not stream.eof:
            hungry = not self._waiting and getattr(stream, "needs_input", True)
            packed = self._read() if hungry else self._waiting
            try:
                more: bytes = stream.decompress(packed, _UNPACKED_PIECE)
            except _REFUSED as error:
                said = printable(str(error), 100)
                raise PackedError("broken", f"the {self._kind} file is damaged: {said}") from error
            self._waiting = getattr(stream, "unconsumed_tail", b"")
            if more:
                return more
            if hungry and not packed and not stream.eof:
                raise PackedError("cut", f"the {self._kind} file is cut off")
        return b""

    def _read(self) -> bytes:
        size = _LOCAL_PIECE if self._source.local_path is not None else _REMOTE_PIECE
        stop = min(self.num_bytes_read + size, self._source.num_bytes)
        packed = self._source.read(self.num_bytes_read, stop)
        self.num_bytes_read += len(packed)
        self._told(len(packed))
        return packed


def _decompressor(kind: str) -> Any:
    if kind == "gzip":
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    if kind == "xz":
        return lzma.LZMADecompressor()
    try:
        import zstandard
    except ImportError as error:
        raise MissingDependencyError(
            "files compressed with zstd need a package: pip install 'shardctl[files]'"
        ) from error
    return _Zstandard(zstandard.ZstdDecompressor().decompressobj())


class _Zstandard:
    """The decompressor of zstandard, called as those of Python are.

    It has no bound of what a piece becomes, 32,768 times its size at most; so pieces are small.
    """

    _PIECE = 1 << 12

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.unconsumed_tail = b""

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data) + self.unconsumed_tail

    def decompress(self, packed: bytes, most: int) -> bytes:
        import zstandard

        self.unconsumed_tail = packed[self._PIECE :]
        try:
            return bytes(self._stream.decompress(packed[: self._PIECE]))
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
