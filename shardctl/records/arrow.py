"""Arrow files: streams of messages, and files with a footer that says where these are."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from shardctl.base.text import printable
from shardctl.dataset.dataset import FindingKind
from shardctl.records.contents import Damage, FileContents, Told, refused, untold
from shardctl.records.parquet import pyarrow_module
from shardctl.records.window import Window
from shardctl.stores.ranges import RangeFile
from shardctl.stores.store import ByteSource

_MAGIC = b"ARROW1"
_BEHIND_MAGIC = 8  # where the stream in a file begins
_MOST_METADATA = 1 << 28


class Arrow:
    """Batches of rows, each with its length in the metadata of its message."""

    name = "arrow"
    suffixes: tuple[str, ...] = (".arrow", ".arrows")

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return how many rows a file holds, see `RecordFormat.count`.

        Arrow files carry no checksums: with `checksums` every batch is decoded and validated by
        pyarrow, so that a changed byte which can still be decoded is not noticed.
        """
        window = Window(source, told)
        num_rows: int | None
        has_footer = window.at(0, len(_MAGIC)) == _MAGIC
        try:
            if has_footer:
                num_rows, num_read = _rows_of_file(window, source, told)
            else:
                num_rows, num_read = _rows_of_stream(window, source.num_bytes)[0], 0
        except _DamagedError as error:
            num_rows, num_read, damage = error.num_rows, 0, error.damage
            found = FileContents(num_records=num_rows, damage=damage)
        else:
            found = FileContents(num_records=num_rows)
            if checksums:
                found = _decoded(source, has_footer, num_rows, told)
        num_read += window.num_bytes_read
        whole = checksums and found.damage is None
        return replace(
            found,
            num_bytes=source.num_bytes,
            num_bytes_read=source.num_bytes if whole else min(num_read, source.num_bytes),
        )

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins as Arrow's files or streams do, see `RecordFormat.is_of`."""
        if head.startswith(_MAGIC):
            return True
        if not head.startswith(CONTINUATION) or len(head) < 8:
            return False
        return 0 < int.from_bytes(head[4:8], "little", signed=True) <= _MOST_METADATA


class _DamagedError(Exception):
    """What is wrong with a file whose rows were counted up to there, None for not at all."""

    def __init__(self, num_rows: int | None, kind: FindingKind, byte: int, text: str) -> None:
        super().__init__(text)
        self.num_rows = num_rows
        said = f"at byte {byte}: {printable(text, 150)}"
        self.damage = Damage(kind=kind, text=said, record=num_rows, byte=byte)


def _rows_of_stream(window: Window, end: int, position: int = 0) -> tuple[int, int]:
    """Return the rows and the batches of the stream that begins at a place of a file."""
    num_rows = num_batches = 0
    is_in_file, is_first = position > 0, True
    while True:
        prefix = window.at(position, 8)
        if not prefix:
            text = "the file is empty" if is_first else "the mark that ends a stream is not there"
            raise _DamagedError(None if is_first else num_rows, "cut", position, text)
        # Before 0.15 there was no continuation, and the length came first.
        begins = 4 if prefix.startswith(CONTINUATION) else 0
        if len(prefix) < begins + 4:
            raise _DamagedError(num_rows, "cut", position, "the length of a message is cut off")
        length = int.from_bytes(prefix[begins : begins + 4], "little", signed=True)
        begins += 4
        if length == 0 and not is_first:
            if not is_in_file and window.at(position + begins, 1):  # which no reader sees
                text = "data follows the end of the stream"
                raise _DamagedError(num_rows, "broken", position + begins, text)
            return num_rows, num_batches
        text = f"metadata of {length} bytes, and {end - position - begins} are left"
        if is_first and (not begins or not 0 < length <= _MOST_METADATA):
            raise _DamagedError(None, "broken", 0, "no Arrow stream")
        if not 0 < length <= _MOST_METADATA:
            raise _DamagedError(num_rows, "header", position, f"a message of {length} bytes")
        if position + begins + length > end:
            raise _DamagedError(None if is_first else num_rows, "cut", position, text)
        try:
            kind, rows, num_bytes = read_message(window.at(position + begins, length))
            if (kind == _SCHEMA) != is_first:
                raise ValueError("the schema is not the first message, and the only one")
        except ValueError as error:
            what: FindingKind = "broken" if is_first else "header"
            counted = None if is_first else num_rows
            raise _DamagedError(counted, what, position, str(error)) from error
        following = position + begins + length + num_bytes
        if following > end:
            left = end - position - begins - length
            text = f"{left} of the {num_bytes} bytes of a batch are left"
            raise _DamagedError(num_rows, "cut", position, text)
        num_rows += rows
        num_batches += kind == _ROWS
        position, is_first = following, False


def _rows_of_file(window: Window, source: ByteSource, told: Told) -> tuple[int, int]:
    """Return the rows of the stream in a file, and how many bytes of its footer were read.

    Raises:
        MissingDependencyError: pyarrow is not installed, which reads the footer.
    """
    pa = pyarrow_module("pyarrow", "reading arrow files")
    end = source.num_bytes
    file = RangeFile(source, told)
    file.seek(max(0, end - len(_MAGIC)))
    if file.read() != _MAGIC:
        raise _DamagedError(None, "cut", end, "the file does not end as Arrow files do")
    num_rows, num_batches = _rows_of_stream(window, end, _BEHIND_MAGIC)
    file.seek(0)
    try:
        named = pa.ipc.open_file(file).num_record_batches
    except (pa.ArrowException, OSError, ValueError) as error:
        said = refused(error).text
        raise _DamagedError(None, "broken", end, f"no footer: {said}") from error
    if named != num_batches:
        text = f"its footer names {named} batches, and {num_batches} are there"
        raise _DamagedError(None, "broken", end, text)
    return num_rows, file.num_bytes_read


def _decoded(source: ByteSource, has_footer: bool, stated: int, told: Told) -> FileContents:
    """Return what pyarrow reads of a file whose messages are whole.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    pa = pyarrow_module("pyarrow", "checking arrow files")
    num_rows, done, file = 0, 0, source.file()
    try:
        file.seek(0)
        opened = pa.ipc.open_file(file) if has_footer else pa.ipc.open_stream(file)
        _ = opened.schema.names  # those that are no text raise here
        batches = map(opened.get_batch, range(opened.num_record_batches)) if has_footer else opened
        for batch in batches:
            batch.validate(full=True)
            num_rows += batch.num_rows
            reached = source.num_bytes * num_rows // max(stated, 1)
            told(reached - done)
            done = reached
    except (pa.ArrowException, OSError, ValueError) as error:
        damage = refused(error, record=num_rows)
        return FileContents(num_records=num_rows, checked="decoded", damage=damage)
    return FileContents(num_records=num_rows, checked="decoded")


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
    table = _Table(metadata, _number(metadata, "I", 0))
    kind, num_bytes, num_rows = table.scalar(1, "B"), table.scalar(3, "q"), 0
    if kind not in (_SCHEMA, _DICTIONARY, _ROWS):
        raise ValueError(f"a message of kind {kind}, which holds no rows of a table")
    if kind == _ROWS:
        place = table.place(2)
        if place is None:
            raise ValueError("a field that is needed is not there")
        batch = _Table(metadata, place)
        num_rows, columns = batch.scalar(0, "q"), batch.place(1)
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
        raise ValueError("a place before the metadata")
    try:
        found: int = struct.unpack_from(f"<{kind}", data, position)[0]
    except struct.error as error:
        raise ValueError("a place behind the metadata") from error
    return found


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of FlatBuffers: fields by number, each found through the table's own list of them."""

    data: bytes
    position: int

    def _field(self, number: int) -> int | None:
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

    def place(self, number: int) -> int | None:
        """Return the place that a field points at, None where the table does not hold it."""
        field = self._field(number)
        return None if field is None else field + _number(self.data, "I", field)
