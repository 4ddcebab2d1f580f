"""ArrayRecord files, counted and checked by the `array_record` library."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import Any

from shardctl.base.install import to_install
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Damage, FileContents, Report, no_report, refused
from shardctl.records.decompress import partial_copy
from shardctl.stores.store import ByteSource

_BLOCK = 1 << 24  # bytes of a file whose records are held at a time
_FAILURES = (RuntimeError, ValueError, IndexError)
# Riegeli names the chunk, or else how far it had read.
_CHUNK = re.compile(r"chunk at (\d+)")
_BYTE = re.compile(r"at byte (\d+)")


# google/array_record, cpp/array_record_reader.cc and cpp/layout.proto: the last block of a file, as
# Riegeli aligns them, holds a RiegeliPostscript: where the footer begins, then a magic number.
_LAST_BLOCK = 1 << 16
_POSTSCRIPT = re.compile(
    rb"\x08([\x80-\xff]{0,9}[\x00-\x7f])\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9\x71"
)


def count_array_record(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return what a file holds, see `RecordFormat`.

    The library opens local files alone: of a remote one it is given a temporary copy, of the
    footer for counting, of all for `checksums`.
    """
    if source.local_path is not None:
        return read_array_record(
            source.local_path, num_bytes=source.num_bytes, checksums=checksums, report=report
        )
    end = source.num_bytes
    start = 0 if checksums else _footer_offset(source.read(max(0, end - _LAST_BLOCK), end))
    with partial_copy(source, start, end, report=report) as path:
        found = read_array_record(path, num_bytes=end, checksums=checksums)
    return replace(found, num_bytes_read=end - start)


def _footer_offset(block: bytes) -> int:
    """Return where the footer begins, as the last block of a file says; 0 where it does not say.

    Only what to fetch hangs on it: the library finds the footer by itself, and checks its hash.
    """
    found = _POSTSCRIPT.search(block)
    if found is None:
        return 0
    # A protobuf varint: 7 bits a byte, the lowest first; the top bit says that more follow.
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(found[1]))


def read_array_record(
    path: str, *, num_bytes: int, checksums: bool = True, report: Report = no_report
) -> FileContents:
    """Return what an ArrayRecord file holds; without `checksums` what its footer says.

    The library skips the signature at the beginning and padding, so damage there, which no reader
    notices, is not found.

    Raises:
        MissingDependencyError: the library is not installed.
    """
    try:
        from array_record.python import array_record_module
    except ImportError as error:
        raise MissingDependencyError(
            f"reading array_record files needs a package: {to_install('array-record')}"
        ) from error
    try:
        reader = array_record_module.ArrayRecordReader(path)
    except _FAILURES as error:
        return _refused_whole(error, num_bytes)
    num_records = int(reader.num_records())
    found = FileContents(num_records=num_records, num_bytes=num_bytes)
    if checksums and reader.ok():
        found = _read_all(reader, num_records, num_bytes, report)
    try:
        reader.close()
    except _FAILURES as error:  # here it says what it could not read before
        return found if found.damage is not None else _refused_whole(error, num_bytes)
    return found


def _refused_whole(error: Exception, num_bytes: int) -> FileContents:
    damage = refused(error, empty=not num_bytes)
    return FileContents(num_records=None, num_bytes=num_bytes, damage=damage)


def _read_all(reader: Any, num_records: int, num_bytes: int, report: Report) -> FileContents:
    # So many records as take about _BLOCK bytes on average.
    size = max(1, _BLOCK * num_records // max(num_bytes, 1))
    damage, done, first = None, 0, 0
    while first < num_records and damage is None:
        stop = min(first + size, num_records)
        damage = _damage(reader, first, stop)
        if damage is None:
            reached = num_bytes * stop // num_records
            report(reached - done)
            first, done = stop, reached
    return FileContents(
        num_records=num_records,
        num_bytes=num_bytes,
        num_bytes_read=num_bytes if damage is None else done,
        checked="checksums",
        damage=damage,
    )


def _damage(reader: Any, first: int, stop: int) -> Damage | None:
    """Return what is wrong with the first bad one of records [first, stop)."""
    error = _error(reader, first, stop)
    if error is None:
        return None
    # The library refuses a whole range without saying which of its records is bad.
    first += bisect_left(
        range(first + 1, stop), True, key=lambda end: bool(_error(reader, first, end))
    )
    # The error of the one record, where reading it alone fails again.
    error = _error(reader, first, first + 1) or error
    said = str(error)
    found = _CHUNK.search(said) or _BYTE.search(said)
    byte = None if found is None else int(found[1])
    return refused(error, record=first, byte=byte)


def _error(reader: Any, first: int, stop: int) -> Exception | None:
    try:
        found = len(reader.read(first, stop))
    except _FAILURES as error:
        return error
    if found != stop - first:
        return ValueError(f"{found} of {stop - first} records can be read")
    return None
