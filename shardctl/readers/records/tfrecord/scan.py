"""One pass over the records of a TFRecord file: length, CRC of the length, data, CRC of the data.

Source: xla/tsl/lib/io/record_writer.h and record_reader.cc.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

import google_crc32c

from shardctl.core.dataset.file_finding import FindingKind
from shardctl.core.tfds_rules import (
    CRC32C_MASK_DELTA,
    TFRECORD_FOOTER_BYTES,
    TFRECORD_HEADER_BYTES,
)
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Damage, FileContents, Told, untold
from shardctl.readers.records.tfrecord.blocks import (
    FRAME,
    NO_LENGTH,
    SHRUNK,
    Blocks,
    Extend,
    FarBlocks,
    Lengths,
    NearBlocks,
    equal_headers,
    first_bytes,
    masked,
)
from shardctl.readers.records.tfrecord.inflated import InflatedBlocks, compression_of, opened

_PIECE = 1 << 18  # of the data of a record, whose checksum is continued
_HOPS = 256
_MANY_EQUAL = 64
# TensorFlow takes memory for the length that it reads before it finds that the file ends.
_PLAUSIBLE = 1 << 26

_CRC = struct.Struct("<I")


@dataclass(kw_only=True)
class Scan:
    """One pass; `buffer` holds bytes from `start` on. With `extend` the data are checked too.

    Almost all records pass in one of the three loops `_behind_..`, in much less than a microsecond;
    they stop before a record that is not whole in the buffer, or not sound, for `_next` to look at.
    """

    blocks: Blocks
    told: Told
    extend: Extend | None
    num_records: int = 0
    num_damaged: int = 0
    damage: Damage | None = None
    buffer: bytes = b""
    start: int = 0
    shrunk: bool = False
    lengths: Lengths = field(default_factory=Lengths)
    num_told: int = 0

    def run(self) -> None:
        """Follow the records to the end of the file, or to the first that leads nowhere."""
        position: int | None = 0
        hopping = False
        while position is not None:
            first, num_before = position, self.num_records
            if self.extend is not None:
                position = self._behind_sound_records(position, self.extend)
            elif hopping:
                position = self._behind_headers(position)
            else:
                position = self._behind_framed_records(position)
            self._tell(position)
            at, position = position, self._next(position, ahead=not hopping)
            if position is not None and self.extend is None:
                num_passed = self.num_records - num_before
                hopping = position - first >= self.blocks.hop * num_passed
        self._tell(at)
        if self.damage is None and self.extend is None and not self.blocks.is_still_whole():
            self._note("cut", at, SHRUNK)
        if self.damage is not None and self.num_damaged > 1:
            more = f"{self.damage.text}; {self.num_damaged} records have damaged data"
            self.damage = replace(self.damage, text=more)

    def _behind_framed_records(self, position: int) -> int:
        """Return the position behind the records that are whole in the buffer, by their headers."""
        buffer, lengths = self.buffer, self.lengths
        inside, stop, num_bytes, num_records = position - self.start, 0, len(buffer), 0
        stride = lengths[buffer[inside : inside + TFRECORD_HEADER_BYTES]] + FRAME
        if (count := (num_bytes - inside) // stride) >= _MANY_EQUAL:
            num_records = equal_headers(buffer, inside, stride, count)
            inside += num_records * stride
        while True:
            stop = inside + FRAME + lengths[buffer[inside : inside + TFRECORD_HEADER_BYTES]]
            if stop > num_bytes:
                break
            inside = stop
            num_records += 1
        self.num_records += num_records
        return self.start + inside

    def _behind_headers(self, position: int) -> int:
        """Return the position behind some large records, of which the headers alone are read."""
        lengths, header_at = self.lengths, self.blocks.header_at()
        end = self.blocks.end or 0
        mean = position // max(self.num_records, 1)
        self.blocks.announce(position, mean, _HOPS)
        hops = 0
        while hops < _HOPS:
            stop = position + FRAME + lengths[header_at(position)]
            if stop > end:
                break
            position = stop
            hops += 1
        self.num_records += hops
        self.blocks.num_bytes_read += hops * TFRECORD_HEADER_BYTES
        return position

    def _behind_sound_records(self, position: int, extend: Extend) -> int:
        """Return the position behind the records that are whole in the buffer and sound."""
        buffer, lengths, stated = self.buffer, self.lengths, _CRC.unpack_from
        inside, num_bytes, num_records = position - self.start, len(self.buffer), 0
        while True:
            begin = inside + TFRECORD_HEADER_BYTES
            stop = begin + lengths[buffer[inside:begin]]
            if stop + TFRECORD_FOOTER_BYTES > num_bytes:
                break
            crc = extend(0, buffer[begin:stop])
            # `masked`, without a call
            crc = (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF
            if crc != stated(buffer, stop)[0]:
                break
            inside = stop + TFRECORD_FOOTER_BYTES
            num_records += 1
        self.num_records += num_records
        return self.start + inside

    def _next(self, position: int, *, ahead: bool) -> int | None:
        """Return the position behind one record; None at the end, or where nothing is behind it."""
        if position - self.start + TFRECORD_HEADER_BYTES > len(self.buffer):
            self._fill(position, TFRECORD_HEADER_BYTES, ahead=ahead)
        inside = position - self.start
        header = self.buffer[inside : inside + TFRECORD_HEADER_BYTES]
        length = self.lengths[header]
        if length == NO_LENGTH:
            self._note_header(header, position)
            return None
        stop = position + FRAME + length
        known = self.blocks.end is not None
        if (known or self.extend is None) and not self.blocks.reaches(stop):
            self._note_short(position, length)
            return None
        if self.extend is not None and not self._is_sound(self.extend, position, length):
            if self.shrunk:
                self._note_short(position, length)
                return None
            self.num_damaged += 1
            self._note("data", position, "its data does not match its checksum")
        self.num_records += 1
        return stop

    def _note_header(self, header: bytes, position: int) -> None:
        """Note what is wrong where no length is; nothing, at the end."""
        end = self.blocks.end
        if len(header) == TFRECORD_HEADER_BYTES:
            self._note("header", position, "its length does not match its checksum")
        elif self.blocks.fault is not None:
            self._note(self.blocks.fault[0], position, self.blocks.fault[1])
        elif end is not None and position + len(header) < end:
            self._note("cut", position, SHRUNK)
        elif header:
            left = f"{len(header)} of the {TFRECORD_HEADER_BYTES} of its header"
            self._note_cut(position, left)

    def _note_short(self, position: int, length: int) -> None:
        """Note a record of which the end is not there."""
        end = self.blocks.end or 0
        left = end - position - TFRECORD_HEADER_BYTES
        if length - left > _PLAUSIBLE:
            self._note("too-long", position, f"its length is {length}, and {left} bytes are left")
        elif self.blocks.fault is not None:
            self._note(self.blocks.fault[0], position, self.blocks.fault[1])
        elif position + FRAME + length <= end:
            self._note("cut", position, SHRUNK)
        else:
            self._note_cut(position, f"{end - position} of {FRAME + length}")

    def _is_sound(self, extend: Extend, position: int, length: int) -> bool:
        """Return whether the data of a record matches its checksum."""
        inside = position - self.start
        whole = inside + FRAME + length
        if whole > len(self.buffer):
            if length > _PIECE:
                return self._is_sound_in_pieces(extend, position, length)
            self._fill(position, FRAME + length)
            inside, whole = 0, FRAME + length
            if whole > len(self.buffer):
                self.shrunk = True
                return False
        crc = extend(0, self.buffer[inside + TFRECORD_HEADER_BYTES : whole - TFRECORD_FOOTER_BYTES])
        stated: int = _CRC.unpack_from(self.buffer, whole - TFRECORD_FOOTER_BYTES)[0]
        return masked(crc) == stated

    def _is_sound_in_pieces(self, extend: Extend, position: int, length: int) -> bool:
        place, left, crc = position + TFRECORD_HEADER_BYTES, length, 0
        while left:
            self._fill(place, min(left, _PIECE))
            piece = self.buffer[:left]
            if not piece:
                self.shrunk = True
                return False
            crc = extend(crc, piece)
            place, left = place + len(piece), left - len(piece)
            self._tell(place)
        self._fill(place, TFRECORD_FOOTER_BYTES)
        if len(self.buffer) < TFRECORD_FOOTER_BYTES:
            self.shrunk = True
            return False
        stated: int = _CRC.unpack_from(self.buffer)[0]
        return masked(crc) == stated

    def _fill(self, position: int, needed: int, *, ahead: bool = True) -> None:
        """Let the buffer begin at a position and hold so many bytes, fewer where the file ends."""
        rest = self.buffer[position - self.start :]
        if len(rest) <= self.blocks.again:
            self.blocks.num_bytes_read -= len(rest)
            rest = b""
        pieces, missing = [rest], needed - len(rest)
        place = position + len(rest)
        while missing > 0:
            piece = self.blocks.read(place, missing, ahead=ahead)
            if not piece:
                break
            pieces.append(piece)
            missing, place = missing - len(piece), place + len(piece)
        self.buffer, self.start = b"".join(pieces), position

    def _tell(self, position: int) -> None:
        passed = self.blocks.passed(position)
        self.told(passed - self.num_told)
        self.num_told = passed

    def _note_cut(self, position: int, left: str) -> None:
        where = f"{self.num_records} at byte {position}{self.blocks.place}"
        text = f"cut off in record {where}: bytes left: {left}"
        self._first(Damage(kind="cut", text=text, record=self.num_records, byte=position))

    def _note(self, kind: FindingKind, position: int, text: str) -> None:
        said = f"record {self.num_records} at byte {position}{self.blocks.place}: {text}"
        self._first(Damage(kind=kind, text=said, record=self.num_records, byte=position))

    def _first(self, damage: Damage) -> None:
        if self.damage is None:
            self.damage = damage


# TFRecord as one of the formats: plain files, and files compressed as a whole.

_TELLING = 1 << 12  # bytes that say how a file is compressed


class TFRecord:
    """Records with their length before them; nothing in a file says how many there are."""

    name = "tfrecord"
    suffixes: tuple[str, ...] = (".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record", ".records")

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds; without `checksums` the data of records is jumped over.

        Lengths are checked in any case. A record whose data is damaged is counted, and the reading
        goes on behind it; behind a damaged length nothing says where records begin. A file that is
        compressed as a whole is decompressed in any case; record and byte are those inside.
        """
        extend = google_crc32c.extend if checksums else None
        head = first_bytes(source)
        plain = not head or Lengths()[head[:TFRECORD_HEADER_BYTES]] != NO_LENGTH
        compression = None if plain else compression_of(head[:_TELLING])
        if compression is not None:
            blocks: Blocks = InflatedBlocks(source, compression, head)
            head = b""
        else:
            plain_blocks = FarBlocks if source.local_path is None else NearBlocks
            blocks = plain_blocks(source, len(head))
        scan = Scan(blocks=blocks, told=told, extend=extend, buffer=head)
        scan.run()
        return FileContents(
            num_records=scan.num_records,
            num_bytes=source.num_bytes,
            num_bytes_read=blocks.num_bytes_read,
            checked="checksums" if checksums else "framing",
            damage=scan.damage,
            compression=compression,
        )

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins with the header of a record, see `RecordFormat.is_of`."""
        compression = compression_of(head[:_TELLING])
        if compression is not None:
            head = opened(head, compression) or b""
        if len(head) < TFRECORD_HEADER_BYTES:
            return None
        return Lengths()[head[:TFRECORD_HEADER_BYTES]] != NO_LENGTH
