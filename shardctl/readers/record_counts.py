"""How many examples record files really hold, by their framing or footers alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO

from shardctl.core.text import printable
from shardctl.core.tfds_rules import (
    CRC32C_MASK_DELTA,
    CRC32C_POLYNOMIAL,
    TFRECORD_FOOTER_BYTES,
    TFRECORD_HEADER_BYTES,
)
from shardctl.errors import MissingDependencyError

COUNTED_FORMATS = ("tfrecord", "array_record", "parquet")

_FRAME = TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES
_AHEAD = 1 << 16
_MOST_KNOWN = 1 << 14


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordCount:
    """Whole records of a file, None where it cannot be read; `problem` says what is wrong with it.

    A file that is cut off has the records before the cut, and a problem.
    """

    num_records: int | None
    problem: str | None = None


def count_records(path: str, file_format: str) -> RecordCount:
    """Return how many records a local file holds; the data of the records is not read.

    Raises:
        MissingDependencyError: the library that reads the format is not installed.
        ValueError: a format that is not counted (see `COUNTED_FORMATS`).
    """
    try:
        if file_format == "tfrecord":
            with open(path, "rb", buffering=0) as file:
                return count_tfrecords(file)
        if file_format == "array_record":
            return _count_array_record(path)
        if file_format == "parquet":
            return _count_parquet(path)
    except FileNotFoundError:
        return RecordCount(num_records=None, problem="missing")
    except OSError as error:
        return RecordCount(num_records=None, problem=printable(error.strerror or str(error), 200))
    raise ValueError(f"no way to count {file_format}")


def count_tfrecords(file: BinaryIO) -> RecordCount:
    """Return how many records a TFRecord file holds, jumping from one length to the next.

    A length is checked by its masked CRC32C; the data and its checksum are skipped
    (xla/tsl/lib/io/record_writer.h: length, CRC of the length, data, CRC of the data).

    >>> import io
    >>> count_tfrecords(io.BytesIO(b"")).num_records
    0
    >>> count_tfrecords(io.BytesIO(bytes(11)))
    RecordCount(num_records=0, problem='cut off 11 bytes after record 0')
    """
    file.seek(0, 2)
    end = file.tell()
    position = num_records = buffer_start = 0
    buffer = b""
    known: set[bytes] = set()  # headers that were checked: lengths repeat
    while position < end:
        inside = position - buffer_start
        if inside + TFRECORD_HEADER_BYTES > len(buffer):
            file.seek(position)
            # Where records are large, little is read between the jumps.
            jump = position // num_records if num_records else 0
            buffer = file.read(_AHEAD if jump < _AHEAD // 4 else TFRECORD_HEADER_BYTES) or b""
            buffer_start, inside = position, 0
        header = buffer[inside : inside + TFRECORD_HEADER_BYTES]
        if len(header) < TFRECORD_HEADER_BYTES:
            break
        if header not in known:
            if _masked_crc32c(header[:8]) != _CRC.unpack_from(header, 8)[0]:
                return RecordCount(
                    num_records=num_records,
                    problem=f"no record at byte {position}, after record {num_records}",
                )
            if len(known) < _MOST_KNOWN:
                known.add(header)
        (length,) = _LENGTH.unpack_from(header)
        if position + _FRAME + length > end:
            break
        position += _FRAME + length
        num_records += 1
    if position < end:
        rest = end - position
        return RecordCount(
            num_records=num_records,
            problem=f"cut off {rest} bytes after record {num_records}",
        )
    return RecordCount(num_records=num_records)


_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def _masked_crc32c(data: bytes) -> int:
    """Return the checksum of a length (xla/tsl/lib/hash/crc32c.h: Mask)."""
    table = _crc_table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    """Return the table of CRC32C (Castagnoli)."""
    entries = []
    for byte in range(256):
        entry = byte
        for _ in range(8):
            entry = (entry >> 1) ^ (CRC32C_POLYNOMIAL if entry & 1 else 0)
        entries.append(entry)
    return tuple(entries)


def _count_array_record(path: str) -> RecordCount:
    try:
        from array_record.python import array_record_module
    except ImportError as error:
        raise MissingDependencyError(
            "counting array_record files needs a package: pip install array-record"
        ) from error
    with open(path, "rb"):  # the library says less about a file that is not there
        pass
    try:
        reader = array_record_module.ArrayRecordReader(path)
        try:
            return RecordCount(num_records=int(reader.num_records()))
        finally:
            reader.close()
    except (RuntimeError, ValueError, IndexError) as error:
        return RecordCount(num_records=None, problem=_first_line(error))


def _count_parquet(path: str) -> RecordCount:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingDependencyError(
            "counting parquet files needs a package: pip install pyarrow"
        ) from error
    try:
        return RecordCount(num_records=int(parquet.read_metadata(path).num_rows))
    except FileNotFoundError:
        raise
    except (ArrowException, OSError) as error:
        return RecordCount(num_records=None, problem=_first_line(error))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["it cannot be read"]
    return printable(lines[0], 200)
