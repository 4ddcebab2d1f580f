"""Parquet files by pyarrow: all rows decoded, and checksums of pages where they have them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, BinaryIO

from shardctl.base.hooks import provided
from shardctl.base.tfds_rules import requirement_beside
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Checked, Damage, FileContents, Told, refused, untold
from shardctl.stores.ranges import RangeFile
from shardctl.stores.store import ByteSource

_ROWS = 1 << 10  # rows that are decoded at a time
_PAGE_HEADER_BYTES = 32


def pyarrow_module(name: str, what: str) -> Any:
    """Return a module of pyarrow that `what` needs, as "reading parquet files".

    Raises:
        MissingDependencyError: it is not installed, or too new for the NumPy that TensorFlow takes.
    """
    try:
        importlib.import_module("pyarrow")  # not asked for again where its module is loaded
        return importlib.import_module(name)
    except ImportError as error:
        beside = requirement_beside(provided("installed_version")("tensorflow") or "", "pyarrow")
        raise MissingDependencyError(
            f"{what} needs a package: pip install '{beside or 'shardctl[files]'}'"
        ) from error


class Parquet:
    """Columns of rows with a footer that says how many."""

    name = "parquet"
    suffixes: tuple[str, ...] = (".parquet",)

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds, see `RecordFormat.count`."""
        if checksums:
            return read_parquet(source.file(), num_bytes=source.num_bytes, told=told)
        file = RangeFile(source, told)
        found = read_parquet(file, num_bytes=source.num_bytes, checksums=False)
        return replace(found, num_bytes_read=file.num_bytes_read)

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins as Parquet files do, see `RecordFormat.is_of`."""
        return head[:4] == b"PAR1"


def read_parquet(
    file: BinaryIO | RangeFile, *, num_bytes: int, checksums: bool = True, told: Told = untold
) -> FileContents:
    """Return what a Parquet file holds; without `checksums` what its footer says.

    Checksums of pages are optional, and TFDS writes none: then `checked` is "decoded", and a
    changed byte that can still be decoded is not noticed.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    parquet = pyarrow_module("pyarrow.parquet", "reading parquet files")
    try:
        opened = parquet.ParquetFile(file, page_checksum_verification=True)
    except _failures() as error:
        refusal = refused(error, empty=not num_bytes)
        return FileContents(num_records=None, num_bytes=num_bytes, damage=refusal)
    stated = int(opened.metadata.num_rows)
    of_groups = sum(
        opened.metadata.row_group(group).num_rows for group in range(opened.metadata.num_row_groups)
    )
    if of_groups != stated:
        text = f"its footer says {stated} rows, and {of_groups} by its groups"
        contradiction = Damage(kind="broken", text=text)
        return FileContents(num_records=None, num_bytes=num_bytes, damage=contradiction)
    if not checksums:
        return FileContents(num_records=stated, num_bytes=num_bytes)
    num_rows = num_read = 0
    num_groups = opened.metadata.num_row_groups
    damage: Damage | None = None
    checked: Checked | None = None
    for group in range(num_groups):
        before = file.tell()
        rows, failure = _decoded(opened, group, _ROWS, told)
        if failure is not None:  # row by row up to the first bad one
            rows, again = _decoded(opened, group, 1, told)
            damage = refused(again or failure, record=num_rows + rows)
            if file.tell() == before:
                # No page was looked for: what the footer says of the columns is broken, and
                # pyarrow ends the process when it is asked for a column.
                checked = "decoded"
            else:
                damage = replace(damage, byte=_first_byte(opened, group))
            break
        num_rows += rows
        reached = num_bytes * (group + 1) // num_groups
        told(reached - num_read)
        num_read = reached
    else:
        if num_rows != stated:
            text = f"its footer says {stated} rows, and {num_rows} can be read"
            damage = Damage(kind="broken", text=text)
    stopped = damage is not None and damage.record is not None
    return FileContents(
        num_records=stated if stopped else num_rows,
        num_bytes=num_bytes,
        num_bytes_read=num_bytes if damage is None else num_read,
        checked=checked or ("checksums" if _has_checksums(file, opened) else "decoded"),
        damage=damage,
    )


def _first_byte(opened: Any, group: int) -> int:
    """Return where the pages of a group begin."""
    column = opened.metadata.row_group(group).column(0)
    byte = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset is not None:
        byte = min(byte, column.dictionary_page_offset)
    return int(byte)


def _decoded(opened: Any, group: int, size: int, told: Told) -> tuple[int, Exception | None]:
    rows = 0
    try:
        for batch in opened.iter_batches(batch_size=size, row_groups=[group]):
            rows += batch.num_rows
            told(0)  # a group may be large, and the reading may have to end
    except _failures() as error:
        return rows, error
    return rows, None


def _failures() -> tuple[type[Exception], ...]:
    """Return what pyarrow raises of a file that it cannot read."""
    from pyarrow import ArrowException

    return ArrowException, OSError, ValueError


def _has_checksums(file: BinaryIO | RangeFile, opened: Any) -> bool:
    """Return whether the header of the first page holds a checksum; a writer sets all or none.

    parquet.thrift, PageHeader in the compact protocol: three i32 fields (type, uncompressed and
    compressed size), then `crc`, an i32 too, where there is one.
    """
    if not opened.metadata.num_row_groups or not opened.metadata.num_columns:
        return False
    column = opened.metadata.row_group(0).column(0)
    offsets = [column.data_page_offset, column.dictionary_page_offset]
    # A damaged footer may say a place before the file.
    file.seek(max(0, min(offset for offset in offsets if offset is not None)))
    header = file.read(_PAGE_HEADER_BYTES)
    position = 0
    for _ in range(3):
        position += 1  # the kind of the field and its number
        while position < len(header) and header[position] & 0x80:  # a varint
            position += 1
        position += 1
    return header[position : position + 1] == b"\x15"  # an i32, the next field by number
