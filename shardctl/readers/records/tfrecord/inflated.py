"""What a GZIP or ZLIB file holds, decompressed piece by piece as TensorFlow does it.

Source: xla/tsl/lib/io/zlib_inputstream.cc. Its buffers are part of what it reads: where a piece of
input gives no output and the file has no more, it takes that for the end, though compressed data
may be left. So the buffers are the same here, and what it does not read is said.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from shardctl.core.dataset.file_finding import FindingKind
from shardctl.core.tfds_rules import TFRECORD_HEADER_BYTES
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Compression
from shardctl.readers.records.tfrecord.blocks import SHRUNK

# RecordReaderOptions of record_reader.h: what is read and what is decompressed at a time.
BUFFER = 256 << 10
_FETCHED = 1 << 22  # of a remote file at a time
_WINDOW_BITS: dict[Compression, int] = {"GZIP": zlib.MAX_WBITS + 16, "ZLIB": zlib.MAX_WBITS}


def compression_of(head: bytes) -> Compression | None:
    """Return how a file is compressed that begins so (RFC 1952, 2.3.1; RFC 1950, 2.2).

    What begins like zlib may be the damaged length of a plain record; that does not decompress.
    """
    if head[:3] == b"\x1f\x8b\x08":
        return "GZIP"
    if len(head) < 2 or head[0] & 0x8F != 0x08 or int.from_bytes(head[:2], "big") % 31:
        return None
    inside = opened(head, "ZLIB")
    return None if inside is None else "ZLIB"


def opened(head: bytes, compression: Compression) -> bytes | None:
    """Return the first 12 bytes inside a file that begins so, fewer where there are no more.

    None where it does not say what the first ones are, or is not compressed so.
    """
    inflate = zlib.decompressobj(_WINDOW_BITS[compression])
    try:
        inside = inflate.decompress(head, TFRECORD_HEADER_BYTES)
    except zlib.error:
        return None
    return inside if inside or inflate.eof else None


class InflatedBlocks:
    """The bytes inside a compressed file, from its beginning to its end, once.

    fault: why they end before the file does, or without the end that they should have.
    """

    hop = float("inf")
    again = 0

    def __init__(self, source: ByteSource, compression: Compression, head: bytes) -> None:
        self._source = source
        self._compression = compression
        self.end: int | None = None
        self.place = f" of what is inside {compression}"
        self.num_bytes_read = len(head)
        self.fault: tuple[FindingKind, str] | None = None
        self._input, self._fetched = b"", head
        self._output, self._stop = b"", 0  # the last piece, and where it ends
        self._inflate = self._new()
        self._begun = False  # whether a member has begun that has not ended

    def _new(self) -> Any:
        return zlib.decompressobj(_WINDOW_BITS[self._compression])

    def read(self, start: int, needed: int, *, ahead: bool) -> bytes:
        """Return bytes that follow, see `Blocks.read`; those before `start` are let go."""
        if not self.reaches(start):
            return b""
        pieces = [self._output[len(self._output) - (self._stop - start) :]]
        while self._stop < start + needed and self._next():
            pieces.append(self._output)
        self._output = b""
        return b"".join(pieces)

    def reaches(self, stop: int) -> bool:
        """Return whether so many bytes are inside, see `Blocks.reaches`."""
        while self._stop < stop:
            if not self._next():
                return False
        return True

    def _next(self) -> bool:
        """Decompress a piece; return whether there was one."""
        while self.end is None:
            if self._decompress():
                return True
            if self.fault is not None or not self._refill():
                self._finish()
        return False

    def _decompress(self) -> bool:
        if self._inflate.eof:  # of ZLIB, behind which TensorFlow reads nothing
            return False
        try:
            output = self._inflate.decompress(self._input, BUFFER)
        except zlib.error as error:
            said = str(error).split(": ")[-1]
            behind = f"behind byte {self._read_up_to()} of the file"
            text = f"its {self._compression} data are damaged {behind}: {said}"
            self.fault = ("broken", text)
            return False
        self._begun = self._begun or bool(self._input)
        self._input = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._input = self._inflate.unused_data
            if self._compression == "GZIP":  # another member may follow
                self._inflate, self._begun = self._new(), False
        self._output, self._stop = output, self._stop + len(output)
        return bool(output)

    def _refill(self) -> bool:
        """Read more of the file; return False where nothing is left or no room for it."""
        if self._inflate.eof:
            return False
        room = BUFFER - len(self._input)
        if len(self._fetched) < room:
            start = self.num_bytes_read
            size = BUFFER if self._source.local_path is not None else _FETCHED
            stop = min(start + size, self._source.num_bytes)
            data = self._source.read(start, stop) if stop > start else b""
            if len(data) < stop - start:
                self.fault = ("cut", SHRUNK)
                return False
            self.num_bytes_read += len(data)
            self._fetched += data
        more, self._fetched = self._fetched[:room], self._fetched[room:]
        self._input += more
        return bool(more)

    def _read_up_to(self) -> int:
        """Return how many bytes of the file were decompressed."""
        return self.num_bytes_read - len(self._fetched) - len(self._input)

    def _finish(self) -> None:
        """Say what is wrong with the end, where something is."""
        at = self._read_up_to()
        left = self._source.num_bytes - at
        if self.fault is None and left:
            read = f"TensorFlow reads no further than byte {at} of the file"
            self.fault = ("broken", f"{read}, and {left} bytes are left")
        elif self.fault is None and self._begun and not self._inflate.eof:
            self.fault = ("cut", f"the file ends before its {self._compression} data do")
        self.end = self._stop

    def header_at(self) -> Callable[[int], bytes]:
        """Return what reads a header; data must be decompressed all the same."""
        return lambda position: self.read(position, TFRECORD_HEADER_BYTES, ahead=False)

    def announce(self, start: int, mean: int, count: int) -> None:
        """Take no notice, see `Blocks.announce`."""

    def passed(self, position: int) -> int:
        """Return how many bytes of the file were decompressed."""
        return self._read_up_to()

    def is_still_whole(self) -> bool:
        """Return True: what is missing was noticed."""
        return True
