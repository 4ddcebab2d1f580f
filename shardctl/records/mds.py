"""MDS shards by their own header, plain or compressed as a whole.

Source: mosaicml-streaming 0.13, streaming/base/format/mds/writer.py, encode_joint_shard: uint32
number of samples, uint32 offsets of the samples and of the end, the columns as JSON, the samples.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace

from shardctl.dataset.dataset import FindingKind
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Damage, FileContents, Told, untold
from shardctl.records.packed import PackedError, Unpacked, packed_as
from shardctl.records.window import Bytes, Window
from shardctl.stores.store import ByteSource

_NUMBER = 4  # bytes of each number of the header
_AHEAD = 1 << 16  # bytes in which the header of most shards is
_PIECE = 1 << 14  # offsets that are checked at a time
_HEAD_BYTES = 1 << 12  # what `is_of` is given, of a file that is not shorter
_MOST_COLUMNS = 1 << 24  # bytes of JSON; it names the columns
_COLUMNS = b'{"column_encodings": '


class MDS:
    """A shard says in its first bytes how many samples it holds, and where each begins."""

    name = "mds"
    suffixes: tuple[str, ...] = (".mds",)

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return how many samples a shard holds, see `RecordFormat.count`.

        MDS has no checksums of its own: with `checksums` all offsets are followed. A compressed
        shard is unpacked to its end in any case. Hashes that index.json may hold are compared where
        that is read, see `sidecars`.
        """
        window = Window(source, told, ahead=_AHEAD)
        found = _counted(window, source.num_bytes, checksums=checksums)
        num_read = window.num_bytes_read
        damage = found.damage
        if damage is not None:
            packing = packed_as(window.at(0, 16))
            if packing is not None:
                found, num_read = _in_packed(source, packing, told, checksums=checksums)
            elif damage.kind == "broken" and source.num_bytes:
                text = f"{damage.text}; brotli and snappy show in the name alone"
                found = replace(found, damage=replace(damage, text=text))
        return replace(
            found, num_bytes=source.num_bytes, num_bytes_read=min(num_read, source.num_bytes)
        )

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins as shards do, see `RecordFormat.is_of`."""
        if len(head) < 2 * _NUMBER:
            return False
        num_samples, first = struct.unpack_from("<II", head)
        columns = _NUMBER * (num_samples + 2)
        if not columns < first <= columns + _MOST_COLUMNS:
            return False
        if columns + len(_COLUMNS) <= len(head):
            return head.startswith(_COLUMNS, columns)
        return len(head) >= _HEAD_BYTES  # of a shorter one that is all of the file


def _counted(data: Bytes, num_bytes: int | None, *, checksums: bool) -> FileContents:
    """Return what a shard of so many bytes holds; None where its size shows only at its end."""
    header = data.at(0, 2 * _NUMBER)
    if len(header) < 2 * _NUMBER:
        text = "the file is empty" if not header else f"{len(header)} bytes of its header are there"
        return _damaged(None, "cut" if header else "broken", 0, text)
    num_samples, first = struct.unpack("<II", header)
    columns = _NUMBER * (num_samples + 2)  # where they begin: behind the count and the offsets
    if not columns < first <= columns + _MOST_COLUMNS:
        return _damaged(None, "broken", 0, "no MDS shard: its header contradicts itself")
    checked = _checked_offsets(data, num_samples, first) if checksums else None
    if checked is not None:
        return checked
    tail = data.at(columns - _NUMBER, first - columns + _NUMBER)
    if len(tail) < first - columns + _NUMBER:
        return _damaged(None, "cut", 0, "its header is cut off")
    end = int.from_bytes(tail[:_NUMBER], "little")
    if not _are_columns(tail[_NUMBER:]):
        return _damaged(None, "broken", columns, "no MDS shard: no columns are behind its offsets")
    if num_bytes is None:
        is_there = data.is_within(end) and not data.at(end, 1)
        said = None if is_there else "more or fewer bytes are there"
    else:
        said = None if end == num_bytes else f"{num_bytes} bytes are there"
    if said is not None:
        kind: FindingKind = "cut" if num_bytes is not None and num_bytes < end else "broken"
        text = f"its samples end at byte {end}, and {said}"
        return _damaged(None, kind, columns - _NUMBER, text)
    return FileContents(num_records=num_samples)


def _checked_offsets(data: Bytes, num_samples: int, first: int) -> FileContents | None:
    """Return what is wrong where samples begin, None where each begins behind the one before."""
    before = first
    for done in range(0, num_samples + 1, _PIECE):
        size = min(_PIECE, num_samples + 1 - done)
        found = data.at(_NUMBER * (1 + done), _NUMBER * size)
        if len(found) < _NUMBER * size:
            return _damaged(None, "cut", 0, "its header is cut off")
        for index, (offset,) in enumerate(struct.iter_unpack("<I", found), done):
            if offset < before:
                text = f"sample {index} begins at {offset}, before the one before it ends"
                return _damaged(num_samples, "broken", _NUMBER * (1 + index), text)
            before = offset
    return None


def _damaged(num_records: int | None, kind: FindingKind, byte: int, text: str) -> FileContents:
    damage = Damage(kind=kind, text=f"at byte {byte}: {text}", byte=byte)
    return FileContents(num_records=num_records, damage=damage)


def _are_columns(text: bytes) -> bool:
    try:
        columns = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(columns, dict) and "column_names" in columns


def _in_packed(
    source: ByteSource, packing: str, told: Told, *, checksums: bool
) -> tuple[FileContents, int]:
    """Return what a compressed shard holds, and how many bytes were read for it."""
    try:
        data = Unpacked(source, packing, told)
    except MissingDependencyError as error:
        damage = Damage(kind="compressed", text=f"{error}; or index.json says how many samples")
        return FileContents(num_records=None, damage=damage), 0
    try:
        found = _counted(data, None, checksums=checksums)
        if found.damage is not None:
            text = f"unpacked from {packing}, {found.damage.text}"
            found = replace(found, damage=replace(found.damage, text=text, byte=None))
        elif data.drain() or data.behind():
            text = f"data follows its {packing} stream"
            found = replace(found, damage=Damage(kind="broken", text=text))
    except PackedError as error:
        found = FileContents(num_records=None, damage=Damage(kind=error.kind, text=str(error)))
    return found, data.num_bytes_read
