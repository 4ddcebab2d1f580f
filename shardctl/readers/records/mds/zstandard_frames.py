"""How long a frame of Zstandard is, packed and unpacked, without unpacking it.

Source: RFC 8878, 3.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.readers.records.ranges.packed import PackedError
from shardctl.readers.records.ranges.window import Bytes

_MAGIC_BYTES = 4
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)
_CHECKSUM_BYTES = 4
_RUN, _RESERVED = 1, 3  # types of blocks


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A frame: what it becomes, and where it ends, both None where that is not known."""

    num_bytes: int | None
    end: int | None


def read_frame(data: Bytes, *, walk: bool) -> Frame:
    """Return what the header of the first frame says, and with `walk` where its blocks end.

    The end lies behind that of a file which is cut off.

    Raises:
        PackedError: a block of a kind that nobody knows, or the file ends in a header.
    """
    descriptor = _number(data, _MAGIC_BYTES, 1)
    is_single = descriptor >> 5 & 1
    position = _MAGIC_BYTES + 1 + (not is_single) + _DICTIONARY_BYTES[descriptor & 3]
    size_bytes = _SIZE_BYTES[descriptor >> 6] or is_single
    num_bytes = None
    if size_bytes:
        num_bytes = _number(data, position, size_bytes) + (256 if size_bytes == 2 else 0)
    end = _end(data, position + size_bytes) if walk else None
    if end is not None and descriptor >> 2 & 1:
        end += _CHECKSUM_BYTES
    return Frame(num_bytes=num_bytes, end=end)


def _end(data: Bytes, position: int) -> int:
    while True:
        header = _number(data, position, 3)
        kind, size = header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            raise PackedError("broken", f"zstd: no block at byte {position}")
        position += 3 + (1 if kind == _RUN else size)
        if header & 1:
            return position


def _number(data: Bytes, position: int, size: int) -> int:
    found = data.at(position, size)
    if len(found) < size:
        raise PackedError("cut", f"zstd: the file is cut off in a header at byte {position}")
    return int.from_bytes(found, "little")
