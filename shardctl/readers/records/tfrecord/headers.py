"""The header of a record: its length, and the checksum of the length, which is always verified.

Source: xla/tsl/lib/io/record_writer.h and record_reader.cc.
"""

from __future__ import annotations

import struct
from functools import cache

from shardctl.core.tfds_rules import (
    CRC32C_MASK_DELTA,
    TFRECORD_FOOTER_BYTES,
    TFRECORD_HEADER_BYTES,
)
from shardctl.readers.records.crc32c import length_crc32c, masked

FRAME = TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES  # of a record besides its data
NO_LENGTH = 1 << 65  # beyond every length that a header can hold, and so beyond every end

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
        crc = masked(length_crc32c(header[:8]))
    return int(length) if crc == stored else NO_LENGTH


@cache
def _tables() -> tuple[tuple[int, ...], ...]:
    """Return what each of three low bytes of a length changes in its CRC32C, which is linear."""
    zero = length_crc32c(bytes(8))
    low, *others = (
        [length_crc32c((byte << 8 * place).to_bytes(8, "little")) for byte in range(256)]
        for place in range(3)
    )
    return tuple(low), *(tuple(crc ^ zero for crc in table) for table in others)
