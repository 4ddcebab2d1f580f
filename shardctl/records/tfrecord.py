"""TFRecord files, plain or compressed: followed header by header, contents checked where asked.

Source: xla/tsl/lib/io/record_writer.h, record_reader.cc, and zlib_inputstream.cc of the files that
are compressed as a whole.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Any

import google_crc32c

from shardctl.base.tfds_rules import CRC32C_MASK_DELTA, TFRECORD_FOOTER_BYTES, TFRECORD_HEADER_BYTES
from shardctl.dataset.dataset import FindingKind
from shardctl.records.contents import Compression, Damage, FileContents, Report, no_report
from shardctl.records.decompress import Forwards, Window
from shardctl.stores.store import ByteSource

FRAME = TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES  # of a record besides its data
NO_LENGTH = 1 << 65  # beyond every length that a header can hold, and so beyond every end
_MOST_KNOWN = 1 << 14
_PIECE = 1 << 18  # of the data of a record, whose checksum is continued
_REPORTED = 1 << 20  # bytes between two reports
_TELLING = 1 << 12  # bytes that say how a file is compressed
# TensorFlow takes memory for the length that it reads before it finds that the file ends.
_PLAUSIBLE = 1 << 26
_SHRUNK = "the file became shorter while it was read"
_HEADER = struct.Struct("<QI")
# RecordReaderOptions of record_reader.h: what is read and what is decompressed at a time.
BUFFER = 256 << 10
_WINDOW_BITS: dict[Compression, int] = {"GZIP": zlib.MAX_WBITS + 16, "ZLIB": zlib.MAX_WBITS}


def count_tfrecord(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return what a file holds; without `checksums` the data of records is jumped over.

    Lengths are checked in any case. A record whose data is damaged is counted, and reading
    continues behind it; behind a damaged length nothing says where records begin. A file
    that is compressed as a whole is decompressed in any case; record and byte are those inside.
    """
    window = Window(source)
    header = window.at(0, TFRECORD_HEADER_BYTES)
    # A header whose checksum matches settles it: compressed data does not pass by chance.
    plain = not header or Lengths()[header] != NO_LENGTH
    compression = None if plain else compression_of(window.at(0, _TELLING))
    inside = None if compression is None else _Inflated(source, window, compression)
    scan = _Scan(source, inside or window, inside, report)
    scan.run(checksums=checksums)
    return FileContents(
        num_records=scan.num_records,
        num_bytes=source.num_bytes,
        num_bytes_read=window.num_bytes_read,
        checked="checksums" if checksums else "framing",
        damage=scan.damage,
        compression=compression,
    )


def is_tfrecord(head: bytes) -> bool:
    """Return whether a file begins with the header of a record; `head` is 4 KiB of it."""
    compression = compression_of(head)
    if compression is not None:
        head = opened(head, compression) or b""
    return Lengths()[head[:TFRECORD_HEADER_BYTES]] != NO_LENGTH


class Lengths(dict[bytes, int]):
    """The length that a header of 12 bytes holds; NO_LENGTH where it is damaged or incomplete.

    Lengths repeat, so that a look-up mostly answers, and what it answers was verified once.

    >>> Lengths()[bytes(8) + bytes.fromhex("29039807")]
    0
    """

    def __missing__(self, header: bytes) -> int:
        if len(header) != TFRECORD_HEADER_BYTES:
            return NO_LENGTH
        length, stored = _HEADER.unpack(header)
        # The checksum is of the 8 bytes of the length.
        if masked(google_crc32c.value(header[:8])) != stored:
            return NO_LENGTH
        # Files with a different length for each record must not fill the memory.
        if len(self) < _MOST_KNOWN:
            self[header] = length
        return int(length)


def masked(crc: int) -> int:
    """Return a CRC32C as it is stored (xla/tsl/lib/hash/crc32c.h: Mask)."""
    # Rotated right by 15 bits, and a constant added.
    return (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF


class _Scan:
    """One pass over the records: length, CRC of the length, data, CRC of the data."""

    def __init__(
        self, source: ByteSource, data: Window | _Inflated, inside: _Inflated | None, report: Report
    ) -> None:
        self.num_records = 0
        self.damage: Damage | None = None
        self._source, self._data, self._inside, self._report_bytes = source, data, inside, report
        self._place = "" if inside is None else f" of what is inside {inside.compression}"
        self._num_told = 0

    @property
    def _end(self) -> int | None:
        """How many bytes there are, None of those that are not all decompressed yet."""
        return self._source.num_bytes if self._inside is None else self._inside.end

    def run(self, *, checksums: bool) -> None:
        """Follow the records to the end of the file, or to the first that leads nowhere."""
        lengths, at, end = Lengths(), self._data.at, self._end
        position = num_damaged = 0
        while True:
            header = at(position, TFRECORD_HEADER_BYTES)
            length = lengths[header]
            if length == NO_LENGTH:
                if len(header) == TFRECORD_HEADER_BYTES:
                    self._note("header", position, "its length does not match its checksum")
                else:
                    self._note_short(position, TFRECORD_HEADER_BYTES, len(header))
                break
            stop = position + FRAME + length
            # Of compressed data the end shows only by unpacking up to there.
            if end is None and not checksums:
                is_there = self._data.is_within(stop)
            else:
                is_there = end is None or stop <= end
            sound = self._is_sound(position, length) if is_there and checksums else is_there
            if sound is None or not is_there:
                self._note_short(position, FRAME + length, (self._end or 0) - position)
                break
            if not sound:
                num_damaged += 1
                self._note("data", position, "its data does not match its checksum")
            self.num_records += 1
            position = stop
            # All further records that are whole in the buffer, in one tight loop.
            if isinstance(self._data, Window) and not checksums:
                asked = self._data.num_asked
                position = self._data.hop(stop, lengths, TFRECORD_HEADER_BYTES, FRAME)
                self.num_records += self._data.num_asked - asked
            if position - self._num_told > _REPORTED:
                self._report(position)
        self._report(position)
        # Data that are jumped over are not read; a store refuses a file that changed.
        near = self._source.local_path is not None and self._inside is None
        if self.damage is None and near and end and not self._source.read(end - 1, end):
            self._note("cut", position, _SHRUNK)
        if self.damage is not None and num_damaged > 1:
            more = f"{self.damage.text}; {num_damaged} records have damaged data"
            self.damage = replace(self.damage, text=more)

    def _is_sound(self, position: int, length: int) -> bool | None:
        """Return whether the data of a record matches its checksum, None where it is not whole."""
        at, left, crc = position + TFRECORD_HEADER_BYTES, length + TFRECORD_FOOTER_BYTES, 0
        # A record may be larger than memory: its checksum is continued piece by piece.
        while left > TFRECORD_FOOTER_BYTES + _PIECE:
            piece = self._data.at(at, _PIECE)
            if len(piece) < _PIECE:
                return None
            crc = google_crc32c.extend(crc, piece)
            at, left = at + _PIECE, left - _PIECE
            self._report(at)
        rest = self._data.at(at, left)
        if len(rest) < left:
            return None
        crc = google_crc32c.extend(crc, rest[:-TFRECORD_FOOTER_BYTES])
        return masked(crc).to_bytes(4, "little") == rest[-TFRECORD_FOOTER_BYTES:]

    def _note_short(self, position: int, needed: int, left: int) -> None:
        """Note that a header or a record is not whole; nothing, at the end."""
        fault = None if self._inside is None else self._inside.fault
        # More is missing than a file that was cut off would lack: the length itself is wrong.
        if needed - TFRECORD_FOOTER_BYTES - left > _PLAUSIBLE:
            behind = left - TFRECORD_HEADER_BYTES
            text = f"its length is {needed - FRAME}, and {behind} bytes are left"
            self._note("too-long", position, text)
        elif fault is not None:
            self._note(fault[0], position, fault[1])
        elif self._end is not None and position + needed <= self._end:
            self._note("cut", position, _SHRUNK)
        elif left:
            self._note("cut", position, f"cut off: {left} of {needed} bytes are left")

    def _note(self, kind: FindingKind, position: int, text: str) -> None:
        if self.damage is None:
            said = f"record {self.num_records} at byte {position}{self._place}: {text}"
            self.damage = Damage(kind=kind, text=said, record=self.num_records, byte=position)

    def _report(self, position: int) -> None:
        passed = position if self._inside is None else self._inside.num_unpacked
        passed = max(min(passed, self._source.num_bytes), self._num_told)
        self._report_bytes(passed - self._num_told)
        self._num_told = passed


def compression_of(head: bytes) -> Compression | None:
    """Return how a file is compressed that begins so (RFC 1952, 2.3.1; RFC 1950, 2.2).

    What begins like zlib may be the damaged length of a plain record; that does not decompress.
    """
    if head[:3] == b"\x1f\x8b\x08":
        return "GZIP"
    # zlib: method 8 with a window of 32 kB at most, and two bytes that 31 divides.
    if len(head) < 2 or head[0] & 0x8F != 0x08 or int.from_bytes(head[:2], "big") % 31:
        return None
    return None if opened(head, "ZLIB") is None else "ZLIB"


def opened(head: bytes, compression: Compression) -> bytes | None:
    """Return the first 12 bytes inside a file that begins so, fewer where there are no more.

    None where it does not say what the first ones are, or is not compressed so.
    """
    inflate = zlib.decompressobj(_WINDOW_BITS[compression])
    try:
        inside = inflate.decompress(head, TFRECORD_HEADER_BYTES)
    except zlib.error:
        return None
    return inside if inside or inflate.eof else None


class _Inflated(Forwards):
    """The bytes inside a compressed file, decompressed piece by piece as TensorFlow does it.

    Its buffers are part of what it reads: where a piece of input gives no output and the file has
    no more, it takes that for the end, though compressed data may be left. So the buffers are the
    same here, and what it does not read is said.

    end: how many bytes there are, None as long as that is not known. fault: why they end before the
    file does, or without the end that they should have.
    """

    def __init__(self, source: ByteSource, window: Window, compression: Compression) -> None:
        super().__init__()
        self.compression = compression
        self.end: int | None = None
        self.fault: tuple[FindingKind, str] | None = None
        self._source, self._window = source, window
        self._num_read = self._num_inside = 0
        self._input = b""
        self._inflate: Any = zlib.decompressobj(_WINDOW_BITS[compression])
        self._begun = False  # whether a member has begun that has not ended

    @property
    def num_unpacked(self) -> int:
        """How many bytes of the file were decompressed."""
        return self._num_read - len(self._input)

    def _next(self) -> bytes:
        if self.end is not None:
            return b""
        # Empty output means that more input is needed, the end, or a fault; TensorFlow's buffer
        # decides.
        while not (output := self._decompress()):
            if self.fault is not None or not self._refill():
                self._finish()
                break
        return output

    def _decompress(self) -> bytes:
        if self._inflate.eof:  # of ZLIB, behind which TensorFlow reads nothing
            return b""
        try:
            output: bytes = self._inflate.decompress(self._input, BUFFER)
        except zlib.error as error:
            said = str(error).split(": ")[-1]
            behind = f"behind byte {self.num_unpacked} of the file"
            self.fault = ("broken", f"its {self.compression} data are damaged {behind}: {said}")
            return b""
        self._begun = self._begun or bool(self._input)
        # Input that did not fit into the output of this call stays for the next.
        self._input = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._input = self._inflate.unused_data
            if self.compression == "GZIP":  # another member may follow
                self._inflate, self._begun = zlib.decompressobj(_WINDOW_BITS["GZIP"]), False
        self._num_inside += len(output)
        return output

    def _refill(self) -> bool:
        """Read more of the file; return False where nothing is left or no room for it."""
        if self._inflate.eof:
            return False
        # The input buffer is never larger than TensorFlow's; what is in it takes room.
        size = min(BUFFER - len(self._input), self._source.num_bytes - self._num_read)
        more = self._window.at(self._num_read, size)
        if len(more) < size:
            self.fault = ("cut", _SHRUNK)
            return False
        self._num_read += len(more)
        self._input += more
        return bool(more)

    def _finish(self) -> None:
        """Say what is wrong with the end, where something is."""
        left = self._source.num_bytes - self.num_unpacked
        if self.fault is None and left:
            read = f"TensorFlow reads no further than byte {self.num_unpacked} of the file"
            self.fault = ("broken", f"{read}, and {left} bytes are left")
        elif self.fault is None and self._begun and not self._inflate.eof:
            self.fault = ("cut", f"the file ends before its {self.compression} data do")
        self.end = self._num_inside
