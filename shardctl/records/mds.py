"""MDS shards by their own header, plain or compressed as a whole.

Source: mosaicml-streaming 0.13, streaming/base/format/mds/writer.py, encode_joint_shard: uint32
number of samples, uint32 offsets of the samples and of the end, the columns as JSON, the samples.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import partial

from shardctl.errors import MissingDependencyError
from shardctl.records.contents import Damage, DamagedError, FileContents, Report, no_report
from shardctl.records.decompress import Bytes, Window, of_packed, packed_as
from shardctl.stores.store import ByteSource

_NUMBER = 4  # bytes of each number of the header
_AHEAD = 1 << 16  # bytes in which the header of most shards is
_PIECE = 1 << 14  # offsets that are checked at a time
_MOST_COLUMNS = 1 << 24  # bytes of JSON; it names the columns


def count_mds(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return how many samples a shard holds, see `RecordFormat`.

    MDS has no checksums of its own: with `checksums` all offsets are followed. A compressed
    shard is unpacked to its end in any case.
    """
    window = Window(source, report, ahead=_AHEAD)
    found = _counted(window, source.num_bytes, checksums=checksums)
    num_read = min(window.num_bytes_read, source.num_bytes)
    damage = found.damage
    # The name may not tell that a shard is compressed, so it is looked at only where it is no
    # shard.
    packing = None if damage is None else packed_as(window.at(0, 16))
    if packing is not None:
        more = f"data follows its {packing} stream"
        how = {"lead": f"unpacked from {packing}", "left": more, "behind": more}
        count = partial(_counted, num_bytes=None, checksums=checksums)
        try:
            return of_packed(source, packing, report, count, **how)
        except MissingDependencyError as error:
            text = f"{error}; or index.json says how many samples"
            found = FileContents(num_records=None, damage=Damage(kind="compressed", text=text))
            num_read = 0
    elif damage is not None and damage.kind == "broken" and source.num_bytes:
        text = f"{damage.text}; brotli and snappy show in the name alone"
        found = replace(found, damage=replace(damage, text=text))
    return replace(found, num_bytes=source.num_bytes, num_bytes_read=num_read)


def _counted(data: Bytes, num_bytes: int | None, *, checksums: bool) -> FileContents:
    """Return what a shard of so many bytes holds; None where its size shows only at its end."""
    try:
        return FileContents(num_records=_num_samples(data, num_bytes, checksums=checksums))
    except DamagedError as error:
        return error.contents


def _num_samples(data: Bytes, num_bytes: int | None, *, checksums: bool) -> int:
    header = data.at(0, 2 * _NUMBER)
    if len(header) < 2 * _NUMBER:
        text = "the file is empty" if not header else f"{len(header)} bytes of its header are there"
        raise DamagedError("cut" if header else "broken", text, byte=0)
    # The count, and the first offset, which is where the header with its columns ends.
    num_samples, first = struct.unpack("<II", header)
    columns = _NUMBER * (num_samples + 2)  # where they begin: behind the count and the offsets
    if not columns < first <= columns + _MOST_COLUMNS:
        raise DamagedError("broken", "no MDS shard: its header contradicts itself", byte=0)
    if checksums:
        _check_offsets(data, num_samples, first)
    # The last offset (the end of all samples) and the columns as JSON.
    tail = data.at(columns - _NUMBER, first - columns + _NUMBER)
    if len(tail) < first - columns + _NUMBER:
        raise DamagedError("cut", "its header is cut off", byte=0)
    end = int.from_bytes(tail[:_NUMBER], "little")
    if not _are_columns(tail[_NUMBER:]):
        text = "no MDS shard: no columns are behind its offsets"
        raise DamagedError("broken", text, byte=columns)
    # Of a compressed shard the size is not known: it must hold `end` bytes, and none behind them.
    if num_bytes is None and not (data.is_within(end) and not data.at(end, 1)):
        wrong = "more or fewer bytes are there"
    elif num_bytes not in (None, end):
        wrong = f"{num_bytes} bytes are there"
    else:
        return int(num_samples)
    is_cut = num_bytes is not None and num_bytes < end
    text = f"its samples end at byte {end}, and {wrong}"
    raise DamagedError("cut" if is_cut else "broken", text, byte=columns - _NUMBER)


def _check_offsets(data: Bytes, num_samples: int, first: int) -> None:
    """Raise where a sample does not begin behind the one before."""
    # Offsets must not decrease, else a sample would have a negative length.
    before = first
    for done in range(0, num_samples + 1, _PIECE):
        size = min(_PIECE, num_samples + 1 - done)
        found = data.at(_NUMBER * (1 + done), _NUMBER * size)
        if len(found) < _NUMBER * size:
            raise DamagedError("cut", "its header is cut off", byte=0)
        for index, (offset,) in enumerate(struct.iter_unpack("<I", found), done):
            if offset < before:
                text = f"sample {index} begins at {offset}, before the one before it ends"
                byte = _NUMBER * (1 + index)
                raise DamagedError("broken", text, byte=byte, num_records=num_samples)
            before = offset


def _are_columns(text: bytes) -> bool:
    try:
        columns = json.loads(text)
    # Any bytes may be here: neither bad JSON nor deep nesting is more than "no columns".
    except (ValueError, RecursionError):
        return False
    return isinstance(columns, dict) and "column_names" in columns
