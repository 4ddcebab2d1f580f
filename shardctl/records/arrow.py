"""Parquet files, counted by pyarrow, and Arrow files, counted by the metadata of their messages."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from shardctl.base.install import to_install
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Damage, DamagedError, FileContents, Report, no_report, refused
from shardctl.records.decompress import Window
from shardctl.stores.store import ByteSource, RangeFile, seekable

_ROWS_AT_ONCE = 1 << 10  # rows of Parquet that are decoded at a time


def pyarrow_module(name: str, what: str) -> Any:
    """Return a module of pyarrow that `what` needs, as "reading parquet files".

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        importlib.import_module("pyarrow")  # not asked for again where its module is loaded
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"{what} needs a package: {to_install('pyarrow')}") from error


def _failures() -> tuple[type[Exception], ...]:
    """Return what pyarrow raises of a file that it cannot read."""
    from pyarrow import ArrowException

    return ArrowException, OSError, ValueError


def count_parquet(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return what a file holds, see `RecordFormat`.

    Checksums of pages are optional, and TFDS writes none: a changed byte that can still be
    decoded may be missed.
    """
    file = RangeFile(source, no_report if checksums else report)
    num_bytes = source.num_bytes
    found = _read_parquet(file, num_bytes, checksums=checksums, report=report)
    return found if checksums else replace(found, num_bytes_read=file.num_bytes_read)


def _read_parquet(
    file: RangeFile, num_bytes: int, *, checksums: bool, report: Report
) -> FileContents:
    parquet = pyarrow_module("pyarrow.parquet", "reading parquet files")
    nothing = FileContents(num_records=None, num_bytes=num_bytes)
    try:
        opened = parquet.ParquetFile(file, page_checksum_verification=True)
    except _failures() as error:
        return replace(nothing, damage=refused(error, empty=not num_bytes))
    stated, num_groups = int(opened.metadata.num_rows), opened.metadata.num_row_groups
    # The footer states the rows twice; two numbers that disagree are a damaged footer.
    of_groups = sum(opened.metadata.row_group(group).num_rows for group in range(num_groups))
    if of_groups != stated:
        text = f"its footer says {stated} rows, and {of_groups} by its groups"
        return replace(nothing, damage=Damage(kind="broken", text=text))
    if not checksums:
        return replace(nothing, num_records=stated)
    num_rows = num_read = 0
    damage: Damage | None = None
    for group in range(num_groups):
        # Many rows at a time, and only in a group that fails one by one, for the number of the bad
        # one.
        rows, failure = _decoded_rows(opened, group, _ROWS_AT_ONCE, report)
        if failure is not None:  # row by row up to the first bad one
            rows, again = _decoded_rows(opened, group, 1, report)
            damage = refused(again or failure, record=num_rows + rows)
            break
        num_rows += rows
        reached = num_bytes * (group + 1) // num_groups
        report(reached - num_read)
        num_read = reached
    else:
        if num_rows != stated:
            text = f"its footer says {stated} rows, and {num_rows} can be read"
            damage = Damage(kind="broken", text=text)
    stopped = damage is not None and damage.record is not None
    return FileContents(
        # Where the reading stopped at a damaged row, the footer still says how many there should
        # be.
        num_records=stated if stopped else num_rows,
        num_bytes=num_bytes,
        num_bytes_read=num_bytes if damage is None else num_read,
        checked="decoded",
        damage=damage,
    )


def _decoded_rows(
    opened: Any, group: int, size: int, report: Report
) -> tuple[int, Exception | None]:
    rows = 0
    try:
        for batch in opened.iter_batches(batch_size=size, row_groups=[group]):
            rows += batch.num_rows
            report(0)  # a group may be large, and the reading may have to end
    except _failures() as error:
        return rows, error
    return rows, None


_MAGIC = b"ARROW1"
_BEHIND_MAGIC = 8  # where the stream in a file begins
_MOST_METADATA = 1 << 28


def count_arrow(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return how many rows a file holds, see `RecordFormat`.

    Arrow files carry no checksums: with `checksums` every batch is decoded and validated by
    pyarrow, so that a changed byte which can still be decoded is not noticed.
    """
    window = Window(source, report)
    has_footer = window.at(0, len(_MAGIC)) == _MAGIC
    num_read = 0
    try:
        if has_footer:
            num_rows, num_read = _rows_of_file(window, source, report)
        else:
            num_rows = _rows_of_stream(window, source.num_bytes)[0]
        found = FileContents(num_records=num_rows)
        if checksums:
            found = _decoded(source, has_footer, num_rows, report)
    except DamagedError as error:
        found = error.contents
    num_read = min(num_read + window.num_bytes_read, source.num_bytes)
    if checksums and found.damage is None:
        num_read = source.num_bytes
    return replace(found, num_bytes=source.num_bytes, num_bytes_read=num_read)


def _rows_of_stream(window: Window, end: int, position: int = 0) -> tuple[int, int]:
    """Return the rows and the batches of the stream that begins at a position of a file."""
    num_rows: int | None = None  # until the schema is read
    num_batches, is_in_file = 0, position > 0
    while True:
        prefix = window.at(position, 8)
        if not prefix:
            text = "the mark that ends a stream is not there"
            text = "the file is empty" if num_rows is None else text
            raise _damaged(num_rows, "cut", position, text)
        # Before 0.15 there was no continuation, and the length came first.
        begins = 8 if prefix.startswith(CONTINUATION) else 4
        if len(prefix) < begins:
            raise _damaged(num_rows or 0, "cut", position, "the length of a message is cut off")
        # Either continuation (4 bytes) and length (4), or from older writers the length alone.
        length = int.from_bytes(prefix[begins - 4 : begins], "little", signed=True)
        # A length of 0 marks the end of the stream.
        if length == 0 and num_rows is not None:
            if not is_in_file and window.at(position + begins, 1):  # which no reader sees
                text = "data follows the end of the stream"
                raise _damaged(num_rows, "broken", position + begins, text)
            return num_rows, num_batches
        if not 0 < length <= _MOST_METADATA:
            if num_rows is None:
                raise _damaged(None, "broken", 0, "no Arrow stream")
            raise _damaged(num_rows, "header", position, f"a message of {length} bytes")
        left = end - position - begins
        if length > left:
            text = f"metadata of {length} bytes, and {left} are left"
            raise _damaged(num_rows, "cut", position, text)
        try:
            kind, rows, num_bytes = read_message(window.at(position + begins, length))
            if (kind == _SCHEMA) != (num_rows is None):
                raise ValueError("the schema is not the first message, and the only one")
        except ValueError as error:
            what = "broken" if num_rows is None else "header"
            raise _damaged(num_rows, what, position, str(error)) from error
        if num_bytes > left - length:
            text = f"{left - length} of the {num_bytes} bytes of a batch are left"
            raise _damaged(num_rows or 0, "cut", position, text)
        num_rows = (num_rows or 0) + rows
        num_batches += kind == _ROWS
        # Prefix, metadata, and the body, whose data is jumped over.
        position += begins + length + num_bytes


def _damaged(num_rows: int | None, kind: Any, byte: int, text: str) -> DamagedError:
    return DamagedError(kind, text, byte=byte, num_records=num_rows, record=num_rows)


def _rows_of_file(window: Window, source: ByteSource, report: Report) -> tuple[int, int]:
    """Return the rows of the stream in a file, and how many bytes of its footer were read.

    Raises:
        MissingDependencyError: pyarrow is not installed, which reads the footer.
    """
    pa = pyarrow_module("pyarrow", "reading arrow files")
    end = source.num_bytes
    file = RangeFile(source, report)
    file.seek(max(0, end - len(_MAGIC)))
    if file.read() != _MAGIC:
        raise _damaged(None, "cut", end, "the file does not end as Arrow files do")
    num_rows, num_batches = _rows_of_stream(window, end, _BEHIND_MAGIC)
    file.seek(0)
    try:
        named = pa.ipc.open_file(file).num_record_batches
    except _failures() as error:
        raise _damaged(None, "broken", end, f"no footer: {refused(error).text}") from error
    if named != num_batches:
        text = f"its footer names {named} batches, and {num_batches} are there"
        raise _damaged(None, "broken", end, text)
    return num_rows, file.num_bytes_read


def _decoded(source: ByteSource, has_footer: bool, stated: int, report: Report) -> FileContents:
    """Return what pyarrow reads of a file whose messages are whole.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    pa = pyarrow_module("pyarrow", "checking arrow files")
    num_rows, done, file = 0, 0, seekable(source)

    def batches() -> Iterator[Any]:
        file.seek(0)
        opened = pa.ipc.open_file(file) if has_footer else pa.ipc.open_stream(file)
        _ = opened.schema.names  # those that are no text raise here
        if has_footer:
            yield from map(opened.get_batch, range(opened.num_record_batches))
        else:
            yield from opened

    damage = None
    try:
        for batch in batches():
            batch.validate(full=True)
            num_rows += batch.num_rows
            # pyarrow does not say how far it has read, so progress goes by the share of the rows.
            reached = source.num_bytes * num_rows // max(stated, 1)
            report(reached - done)
            done = reached
    except _failures() as error:
        damage = refused(error, record=num_rows)
    return FileContents(num_records=num_rows, checked="decoded", damage=damage)


# Arrow's IPC messages by their metadata: what kind each is, how many rows, how long its body.
#
# Source: arrow/format/Message.fbs and File.fbs, in FlatBuffers' own encoding; "Encapsulated
# message format" of the Arrow columnar specification.

CONTINUATION = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _ROWS = 1, 2, 3  # the union MessageHeader


def read_message(metadata: bytes) -> tuple[int, int, int]:
    """Return what the metadata of a message says: its kind, rows, and the length of its body.

    Raises:
        ValueError: it is no such message.
    """
    # Fields of the table Message by number: 1 the kind of the header, 2 the header, 3 the length of
    # the body; of a RecordBatch 0 is the number of rows, 1 its columns (Message.fbs).
    table = _Table(metadata, _number(metadata, "I", 0))
    kind, num_bytes, num_rows = table.scalar(1, "B"), table.scalar(3, "q"), 0
    if kind not in (_SCHEMA, _DICTIONARY, _ROWS):
        raise ValueError(f"a message of kind {kind}, which holds no rows of a table")
    if kind == _ROWS:
        position = table.target(2)
        if position is None:
            raise ValueError("a field that is needed is not there")
        batch = _Table(metadata, position)
        num_rows, columns = batch.scalar(0, "q"), batch.target(1)
        # The list of columns: how many, and each with its length first.
        has_columns = columns is not None and _number(metadata, "I", columns) > 0
        first = _number(metadata, "q", columns + 4) if columns and has_columns else None
        if first is None and num_bytes:
            raise ValueError("a batch of no columns that has data")
        if first not in (None, num_rows):
            raise ValueError(f"a batch of {num_rows} rows, of which a column has {first}")
    if num_rows < 0 or num_bytes < 0:
        raise ValueError("a message of negative length")
    return kind, num_rows, num_bytes


def _number(data: bytes, kind: str, position: int) -> int:
    if position < 0:
        raise ValueError("an offset before the metadata")
    try:
        found: int = struct.unpack_from(f"<{kind}", data, position)[0]
    except struct.error as error:
        raise ValueError("an offset behind the metadata") from error
    return found


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of FlatBuffers: fields by number, each found through the table's own list of them."""

    data: bytes
    position: int

    def _field(self, number: int) -> int | None:
        # The list of fields (vtable) lies at a signed distance in front. It begins with its own
        # size and that of the table, 2 bytes each; then an offset for each field, 0 where it has
        # its default.
        fields = self.position - _number(self.data, "i", self.position)
        entry = 4 + 2 * number
        if entry + 2 > _number(self.data, "H", fields):
            return None
        offset = _number(self.data, "H", fields + entry)
        return self.position + offset if offset else None

    def scalar(self, number: int, kind: str) -> int:
        """Return a number, 0 where the table does not hold it, as the default of all is."""
        field = self._field(number)
        return 0 if field is None else _number(self.data, kind, field)

    def target(self, number: int) -> int | None:
        """Return where a field points at, None where the table does not hold it."""
        field = self._field(number)
        return None if field is None else field + _number(self.data, "I", field)
