"""Where the bytes of a plain file come from: a disk of this machine, or requests for ranges."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import cache, partial
from typing import BinaryIO, Protocol

from google_crc32c import value as crc32c

from shardctl.core.dataset.file_finding import FindingKind
from shardctl.core.tfds_rules import (
    CRC32C_MASK_DELTA,
    TFRECORD_FOOTER_BYTES,
    TFRECORD_HEADER_BYTES,
)
from shardctl.files.stores.store import ByteSource

SHRUNK = "the file became shorter while it was read"

# A disk: what lies in the page cache is read at 5 GB/s or more, and a call takes a microsecond.
NEAR_HEAD = 1 << 12
NEAR_BLOCK = 1 << 18
NEAR_HOP = 1 << 12
# What comes next is announced, since a disk reads long stretches several times as fast as it reads
# the places of headers one by one; of records that are larger than this, their headers alone.
_ANNOUNCED = 1 << 23
_SPARSE = 1 << 17

# A store: a request takes as long as some megabytes that follow one another.
FAR_HEAD = 1 << 18
FAR_BLOCK = 1 << 22
FAR_HOP = 1 << 20
_MOST_FORESEEN = 63


class Blocks(Protocol):
    """The bytes that a scan follows, plain or decompressed.

    end: how many there are, None of decompressed bytes as long as their end was not reached.
    fault: why they end there, where they should not.
    hop: the mean length from which on each header is better read by itself.
    again: as many bytes are sooner read again than put before those that follow.
    place: what is said behind the number of a byte.
    """

    end: int | None
    hop: float
    again: int
    place: str
    num_bytes_read: int
    fault: tuple[FindingKind, str] | None

    def read(self, start: int, needed: int, *, ahead: bool) -> bytes:
        """Return `needed` bytes from `start` on, fewer at the end; with `ahead` perhaps more."""

    def header_at(self) -> Callable[[int], bytes]:
        """Return what reads the header at a position."""

    def announce(self, start: int, mean: int, count: int) -> None:
        """Take notice that headers follow, so many bytes apart."""

    def reaches(self, stop: int) -> bool:
        """Return whether there are so many bytes. What lies before them is not read any more."""

    def passed(self, position: int) -> int:
        """Return how many bytes of the file are behind a position."""

    def is_still_whole(self) -> bool:
        """Return whether the file has its last byte, once all headers were followed."""


def first_bytes(source: ByteSource) -> bytes:
    """Return the beginning of a file, which tells how large its records are and how it is packed.

    What a store fetches at once anyway is the whole file.
    """
    size = NEAR_HEAD
    if source.local_path is None:
        size = FAR_BLOCK if source.num_bytes <= FAR_BLOCK else FAR_HEAD
    stop = min(size, source.num_bytes)
    return source.read(0, stop) if stop else b""


class NearBlocks:
    """A file of this machine; one that shrinks ends early, one that grows where it ended before.

    It is read, not mapped into memory: a mapped file that shrinks ends the process.
    """

    hop: float = NEAR_HOP
    again = 1 << 16
    place = ""
    fault: tuple[FindingKind, str] | None = None

    def __init__(self, source: ByteSource, num_bytes_read: int) -> None:
        self._source = source
        self._file: BinaryIO = source.file()
        self.end: int | None = source.num_bytes
        self._num_bytes = source.num_bytes
        self._announced = 0
        self.num_bytes_read = num_bytes_read

    def read(self, start: int, needed: int, *, ahead: bool) -> bytes:
        """Return bytes of the file, see `Blocks.read`."""
        stop = min(start + (max(needed, NEAR_BLOCK) if ahead else needed), self._num_bytes)
        if ahead:
            self._announce(start, stop)
        data = self._source.read(start, stop)
        self.num_bytes_read += len(data)
        return data

    def header_at(self) -> Callable[[int], bytes]:
        """Return what reads the header at a position, which may be that of the file's end."""
        if hasattr(os, "pread"):  # not on Windows
            return partial(os.pread, self._file.fileno(), TFRECORD_HEADER_BYTES)
        return lambda position: self._source.read(position, position + TFRECORD_HEADER_BYTES)

    def announce(self, start: int, mean: int, count: int) -> None:
        """Let the system read what is between headers, where that is quicker than a jump."""
        if mean < _SPARSE:
            self._announce(start, start + mean * count)

    def _announce(self, start: int, stop: int) -> None:
        if stop < self._announced or not hasattr(os, "posix_fadvise"):
            return
        start = max(start, self._announced)
        self._announced = min(stop + _ANNOUNCED, self._num_bytes)
        if self._announced > start and self._num_bytes > NEAR_BLOCK:
            length = self._announced - start
            os.posix_fadvise(self._file.fileno(), start, length, os.POSIX_FADV_WILLNEED)

    def reaches(self, stop: int) -> bool:
        """Return whether the file had so many bytes when it was opened."""
        return stop <= self._num_bytes

    def passed(self, position: int) -> int:
        """Return the position, see `Blocks.passed`."""
        return min(position, self._num_bytes)

    def is_still_whole(self) -> bool:
        """Return whether the last byte can be read: data that are jumped over are not."""
        end = self._num_bytes
        return not end or len(self._source.read(end - 1, end)) == 1


class FarBlocks:
    """A file behind requests for ranges; those of headers that can be foreseen are made at once."""

    hop: float = FAR_HOP
    again = 0
    place = ""
    fault: tuple[FindingKind, str] | None = None

    def __init__(self, source: ByteSource, num_bytes_read: int) -> None:
        self._source = source
        self.end: int | None = source.num_bytes
        self._num_bytes = source.num_bytes
        self.num_bytes_read = num_bytes_read
        self._known: dict[int, bytes] = {}
        self._last = self._stride = self._foreseen = 0

    def read(self, start: int, needed: int, *, ahead: bool) -> bytes:
        """Return bytes of the file, see `Blocks.read`."""
        if ahead:
            needed = max(needed, FAR_BLOCK)
        stop = min(start + needed, self._num_bytes)
        data = self._source.read(start, stop) if stop > start else b""
        self.num_bytes_read += len(data)
        return data

    def header_at(self) -> Callable[[int], bytes]:
        """Return what reads the header at a position, and those that may follow it."""
        return self._header_at

    def _header_at(self, position: int) -> bytes:
        stride, self._last = position - self._last, position
        if position in self._known:
            return self._known.pop(position)
        # Where lengths repeat, twice as many headers are foreseen each time; else none is.
        repeats = stride == self._stride
        self._foreseen = min(2 * self._foreseen + 1, _MOST_FORESEEN) if repeats else 0
        self._stride = stride
        last = self._num_bytes - TFRECORD_HEADER_BYTES
        wanted = range(position, min(position + self._foreseen * stride, last) + 1, stride)
        ranges = [(start, start + TFRECORD_HEADER_BYTES) for start in wanted]
        found = self._source.read_many(ranges) if ranges else []
        self._known = dict(zip(wanted, found, strict=True))
        return self._known.pop(position, b"")

    def announce(self, start: int, mean: int, count: int) -> None:
        """Take no notice: what follows is foreseen where lengths repeat."""

    def reaches(self, stop: int) -> bool:
        """Return whether the file has so many bytes."""
        return stop <= self._num_bytes

    def passed(self, position: int) -> int:
        """Return the position, see `Blocks.passed`."""
        return min(position, self._num_bytes)

    def is_still_whole(self) -> bool:
        """Return True: a store refuses a file that changed."""
        return True


# The header of a record: its length, and the checksum of the length, which is always verified.
#
# Source: xla/tsl/lib/io/record_writer.h and record_reader.cc.

FRAME = TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES  # of a record besides its data
NO_LENGTH = 1 << 65  # beyond every length that a header can hold, and so beyond every end

# Continues a checksum with more data; 0 begins one.
Extend = Callable[[int, bytes], int]

_HEADER = struct.Struct("<QI")
_MOST_KNOWN = 1 << 14
_SHORT = 1 << 24  # lengths below it have three bytes


class Lengths(dict[bytes, int]):
    """The length that a header of 12 bytes holds; NO_LENGTH where it is damaged or incomplete.

    Lengths repeat, so that a look-up mostly answers, and what it answers was verified once.

    >>> Lengths()[bytes(8) + bytes.fromhex("29039807")]
    0
    """

    def __missing__(self, header: bytes) -> int:
        length = _verified(header)
        if length != NO_LENGTH and len(self) < _MOST_KNOWN:
            self[header] = length
        return length


def equal_headers(buffer: bytes, first: int, stride: int, count: int) -> int:
    """Return how many of `count` headers, `stride` bytes apart, are that at `first`, without a gap.

    All twelve bytes of each are compared, a column at a time.

    >>> equal_headers(b"headers of 12headers of 13", 0, 13, 2), equal_headers(b"a" * 52, 0, 13, 4)
    (2, 4)
    """
    for place in range(first, first + TFRECORD_HEADER_BYTES):
        column = buffer[place : place + stride * (count - 1) + 1 : stride]
        same = column[:1]
        if column != same * count:
            count -= len(column.lstrip(same))
    return count


def masked(crc: int) -> int:
    """Return a CRC32C as it is stored (xla/tsl/lib/hash/crc32c.h: Mask)."""
    return (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF


def _verified(header: bytes) -> int:
    if len(header) != TFRECORD_HEADER_BYTES:
        return NO_LENGTH
    length, stored = _HEADER.unpack(header)
    if length < _SHORT:
        low, middle, high = _tables()
        crc = low[length & 0xFF] ^ middle[length >> 8 & 0xFF] ^ high[length >> 16]
        # `masked`, without a call
        crc = (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF
    else:
        crc = masked(crc32c(header[:8]))
    return int(length) if crc == stored else NO_LENGTH


@cache
def _tables() -> tuple[tuple[int, ...], ...]:
    """Return what each of three low bytes of a length changes in its CRC32C, which is linear."""
    zero = crc32c(bytes(8))
    low, *others = (
        [crc32c((byte << 8 * place).to_bytes(8, "little")) for byte in range(256)]
        for place in range(3)
    )
    return tuple(low), *(tuple(crc ^ zero for crc in table) for table in others)
