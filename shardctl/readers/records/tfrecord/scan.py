"""TFRecord files by their framing: length, CRC of the length, data, CRC of the data.

Source: xla/tsl/lib/io/record_writer.h and record_reader.cc.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import BinaryIO

from shardctl.core.dataset.file_finding import FindingKind
from shardctl.core.tfds_rules import (
    CRC32C_MASK_DELTA,
    TFRECORD_FOOTER_BYTES,
    TFRECORD_HEADER_BYTES,
)
from shardctl.readers.records.contents import Checked, Damage, FileContents, Told, untold
from shardctl.readers.records.crc32c import Extend, extend_crc32c, length_crc32c, masked

_FRAME = TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES
_BLOCK = 1 << 18
_AHEAD = 1 << 16
_MOST_KNOWN = 1 << 14
# TensorFlow takes memory for the length that it reads before it finds that the file ends.
_PLAUSIBLE = 1 << 26

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def read_tfrecords(
    file: BinaryIO, *, checksums: bool = True, told: Told = untold, num_bytes: int | None = None
) -> FileContents:
    """Return what a TFRecord file holds; without `checksums` the data of records is jumped over.

    Lengths are checked in any case. A record whose data is damaged is counted, and the reading goes
    on behind it; behind a damaged length nothing says where records begin. The file is read in
    blocks, so that a file that shrinks meanwhile ends early, and one that grows is read up to the
    size that it had (`num_bytes`, where the caller knows it).

    Raises:
        MissingDependencyError: `checksums` without google-crc32c.

    >>> import io
    >>> read_tfrecords(io.BytesIO(b""), checksums=False).num_records
    0
    >>> read_tfrecords(io.BytesIO(bytes(11)), checksums=False).damage.text
    'cut off in record 0 at byte 0: bytes left: 11 of the 12 of its header'
    """
    if num_bytes is None:
        num_bytes = file.seek(0, 2) or file.tell()
    scan = _Scan(file=file, end=num_bytes, told=told, extend=extend_crc32c() if checksums else None)
    scan.run()
    checked: Checked = "checksums" if checksums else "framing"
    damage = scan.damage
    if damage is not None and scan.num_damaged > 1:
        more = f"{damage.text}; {scan.num_damaged} records have damaged data"
        damage = replace(damage, text=more)
    return FileContents(
        num_records=scan.num_records,
        num_bytes=num_bytes,
        num_bytes_read=scan.num_bytes_read,
        checked=checked,
        damage=damage,
    )


@dataclass(kw_only=True)
class _Scan:
    """One pass over a file; `buffer` holds its bytes from `start` on."""

    file: BinaryIO
    end: int
    told: Told
    extend: Extend | None
    num_records: int = 0
    num_bytes_read: int = 0
    num_damaged: int = 0
    shrunk: bool = False
    damage: Damage | None = None
    buffer: bytes = b""
    start: int = 0

    def run(self) -> None:
        """Follow the records to the end of the file, or to the first that leads nowhere."""
        position, extend = 0, self.extend
        known: dict[bytes, int] = {}  # headers that were checked: lengths repeat
        while True:
            position = self._behind_sound_records(position, known)
            if position >= self.end:
                return
            inside = position - self.start
            if inside + TFRECORD_HEADER_BYTES > len(self.buffer):
                self._fill(position, TFRECORD_HEADER_BYTES)
                inside = 0
            header = self.buffer[inside : inside + TFRECORD_HEADER_BYTES]
            length = known.get(header)
            if length is None:
                length = self._length(header, position)
                if length is None:
                    return
                if len(known) < _MOST_KNOWN:
                    known[header] = length
            stop = position + _FRAME + length
            if stop > self.end:
                self._cut(position, length)
                return
            if extend is not None and not self._is_sound(extend, position, length):
                if self.shrunk:
                    self._note("cut", position, "the file became shorter while it was read")
                    return
                self.num_damaged += 1
                self._note("data", position, "its data does not match its checksum")
            position = stop
            self.num_records += 1

    def _behind_sound_records(self, position: int, known: dict[bytes, int]) -> int:
        """Return the position behind the sound records of known lengths in the buffer.

        Almost all records pass here, each in half a microsecond.
        """
        buffer, extend, stated = self.buffer, self.extend, _CRC.unpack_from
        inside, num_bytes, num_records = position - self.start, len(self.buffer), 0
        while True:
            begin = inside + TFRECORD_HEADER_BYTES
            length = known.get(buffer[inside:begin])
            if length is None:
                break
            stop = begin + length
            if stop + TFRECORD_FOOTER_BYTES > num_bytes:
                break
            if extend is not None:
                crc = extend(0, buffer[begin:stop])
                # `masked`, without a call
                crc = (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF
                if crc != stated(buffer, stop)[0]:
                    break
            inside = stop + TFRECORD_FOOTER_BYTES
            num_records += 1
        self.num_records += num_records
        return self.start + inside

    def _length(self, header: bytes, position: int) -> int | None:
        """Return the length that a header holds, None where the header is damaged."""
        if len(header) < TFRECORD_HEADER_BYTES:
            self._note_cut(position, f"{len(header)} of the {TFRECORD_HEADER_BYTES} of its header")
            return None
        if masked(length_crc32c(header[:8])) != _CRC.unpack_from(header, 8)[0]:
            compression = _compression(header) if position == 0 else None
            if compression is None:
                self._note("header", position, "its length does not match its checksum")
            else:
                text = f"compressed with {compression}; TFDS reads TFRecord files as they are"
                self._first(Damage(kind="compressed", text=text, record=0, byte=0))
            return None
        length: int = _LENGTH.unpack_from(header)[0]
        return length

    def _cut(self, position: int, length: int) -> None:
        left = self.end - position - TFRECORD_HEADER_BYTES
        if length - left > _PLAUSIBLE:
            self._note("too-long", position, f"its length is {length}, and {left} bytes are left")
            return
        self._note_cut(position, f"{self.end - position} of {_FRAME + length}")

    def _is_sound(self, extend: Extend, position: int, length: int) -> bool:
        """Return whether the data of a record matches its checksum."""
        inside = position - self.start
        whole = inside + _FRAME + length
        if whole > len(self.buffer):
            if length > _BLOCK:
                return self._is_sound_in_pieces(extend, position, length)
            self._fill(position, _FRAME + length)
            inside, whole = 0, _FRAME + length
            if whole > len(self.buffer):
                self.shrunk = True
                return False
        crc = extend(0, self.buffer[inside + TFRECORD_HEADER_BYTES : whole - TFRECORD_FOOTER_BYTES])
        stated: int = _CRC.unpack_from(self.buffer, whole - TFRECORD_FOOTER_BYTES)[0]
        return masked(crc) == stated

    def _is_sound_in_pieces(self, extend: Extend, position: int, length: int) -> bool:
        place, left, crc = position + TFRECORD_HEADER_BYTES, length, 0
        while left:
            self._fill(place, min(left, _BLOCK))
            piece = self.buffer[:left]
            if not piece:
                self.shrunk = True
                return False
            crc = extend(crc, piece)
            place, left = place + len(piece), left - len(piece)
        self._fill(place, TFRECORD_FOOTER_BYTES)
        if len(self.buffer) < TFRECORD_FOOTER_BYTES:
            self.shrunk = True
            return False
        stated: int = _CRC.unpack_from(self.buffer)[0]
        return masked(crc) == stated

    def _fill(self, position: int, needed: int) -> None:
        """Let the buffer begin at a position and hold so many bytes, fewer where the file ends."""
        rest = self.buffer[position - self.start :]
        self.buffer, self.start = rest, position
        if self.extend is not None:
            ahead = _BLOCK
        else:
            # Where records are large, little is read between the jumps.
            jump = position // self.num_records if self.num_records else 0
            ahead = _AHEAD if jump < _AHEAD // 4 else TFRECORD_HEADER_BYTES
        pieces, missing = [rest], needed - len(rest)
        self.file.seek(position + len(rest))
        left = self.end - position - len(rest)
        while missing > 0 and left > 0:
            piece = self.file.read(min(max(missing, ahead), left))
            if not piece:
                break
            pieces.append(piece)
            missing, left = missing - len(piece), left - len(piece)
            self.num_bytes_read += len(piece)
            self.told(len(piece))
        self.buffer = b"".join(pieces)

    def _note_cut(self, position: int, left: str) -> None:
        text = f"cut off in record {self.num_records} at byte {position}: bytes left: {left}"
        self._first(Damage(kind="cut", text=text, record=self.num_records, byte=position))

    def _note(self, kind: FindingKind, position: int, text: str) -> None:
        said = f"record {self.num_records} at byte {position}: {text}"
        self._first(Damage(kind=kind, text=said, record=self.num_records, byte=position))

    def _first(self, damage: Damage) -> None:
        if self.damage is None:
            self.damage = damage


def _compression(header: bytes) -> str | None:
    """Return how a file was compressed that begins so (RFC 1952, 2.3.1; RFC 1950, 2.2).

    What begins like zlib may be the length of a plain record, 376 for one; that ends in zeros.
    """
    if header[:3] == b"\x1f\x8b\x08":
        return "GZIP"
    begins_so = header[0] & 0x8F == 0x08 and int.from_bytes(header[:2], "big") % 31 == 0
    return "ZLIB" if begins_so and any(header[5:8]) else None
