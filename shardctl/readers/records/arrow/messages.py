"""Arrow's IPC messages by their metadata: what kind each is, how many rows, how long its body.

Source: arrow/format/Message.fbs and File.fbs, in FlatBuffers' own encoding; "Encapsulated message
format" of the Arrow columnar specification.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

CONTINUATION = b"\xff\xff\xff\xff"

Kind = Literal["schema", "dictionary", "rows"]
_KINDS: dict[int, Kind] = {1: "schema", 2: "dictionary", 3: "rows"}  # the union MessageHeader


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message: `num_bytes` is the length of the body behind its metadata."""

    kind: Kind
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Where a message of a file is: its metadata, prefix and padding included, then its body."""

    offset: int
    metadata_bytes: int
    num_bytes: int


def read_message(metadata: bytes) -> Message:
    """Return what the metadata of a message says.

    Raises:
        ValueError: it is no such message.
    """
    table = _root(metadata)
    number = table.scalar(1, "B")
    kind = _KINDS.get(number)
    if kind is None:
        raise ValueError(f"a message of kind {number}, which holds no rows of a table")
    num_bytes = table.scalar(3, "q")
    num_rows = _num_rows(table.table(2), num_bytes) if kind == "rows" else 0
    if num_rows < 0 or num_bytes < 0:
        raise ValueError("a message of negative length")
    return Message(kind=kind, num_rows=num_rows, num_bytes=num_bytes)


def _num_rows(batch: _Table, num_bytes: int) -> int:
    """Return the length of a batch, which is that of its first column too."""
    num_rows, first = batch.scalar(0, "q"), batch.first(1)
    if first is None and num_bytes:
        raise ValueError("a batch of no columns that has data")
    if first not in (None, num_rows):
        raise ValueError(f"a batch of {num_rows} rows, of which a column has {first}")
    return num_rows


def read_footer(footer: bytes) -> tuple[list[Block], list[Block]]:
    """Return where the dictionaries and the rows of a file are.

    Raises:
        ValueError: it is no footer.
    """
    table = _root(footer)
    table.table(1)  # the schema, without which nothing can be read
    return table.blocks(2), table.blocks(3)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of FlatBuffers: fields by number, each found through the table's own list of them."""

    data: bytes
    position: int

    def _unpack(self, kind: str, position: int) -> int:
        if position < 0:
            raise ValueError("a place before the metadata")
        try:
            found: int = struct.unpack_from(f"<{kind}", self.data, position)[0]
        except struct.error as error:
            raise ValueError("a place behind the metadata") from error
        return found

    def _field(self, number: int) -> int | None:
        fields = self.position - self._unpack("i", self.position)
        entry = 4 + 2 * number
        if entry + 2 > self._unpack("H", fields):
            return None
        offset = self._unpack("H", fields + entry)
        return self.position + offset if offset else None

    def scalar(self, number: int, kind: str) -> int:
        """Return a number, 0 where the table does not hold it, as the default of all is."""
        place = self._field(number)
        return 0 if place is None else self._unpack(kind, place)

    def _behind(self, number: int) -> int | None:
        place = self._field(number)
        return None if place is None else place + self._unpack("I", place)

    def table(self, number: int) -> _Table:
        """Return the table that a field points at."""
        place = self._behind(number)
        if place is None:
            raise ValueError("a field that is needed is not there")
        self._unpack("i", place)
        return _Table(self.data, place)

    def first(self, number: int) -> int | None:
        """Return the int64 that the first struct of a list begins with, None of an empty list."""
        place = self._behind(number)
        return (
            None if place is None or not self._unpack("I", place) else self._unpack("q", place + 4)
        )

    def blocks(self, number: int) -> list[Block]:
        """Return a list of the struct Block: int64 offset, int32 and padding, int64."""
        place = self._behind(number)
        if place is None:
            return []
        length = self._unpack("I", place)
        begin, stop = place + 4, place + 4 + 24 * length
        if stop > len(self.data):
            raise ValueError("a place behind the metadata")
        found = struct.iter_unpack("<qi4xq", self.data[begin:stop])
        return [Block(offset=at, metadata_bytes=head, num_bytes=body) for at, head, body in found]


def _root(data: bytes) -> _Table:
    outer = _Table(data, 0)
    return _Table(data, outer._unpack("I", 0))
