"""TFRecord files of any bytes, and what the real TensorFlow does with them."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from shardctl.records.contents import FileContents, Report, no_report
from shardctl.records.tfrecord import count_tfrecord
from shardctl.stores.stores import LocalSource
from tests.byte_sources import far
from tests.forked_scripts import forking_python


def _divided(remainder: int) -> int:
    """Return what is left of a byte by CRC32C's definition: a division of polynomials by bits."""
    for _ in range(8):
        remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder


_OF_BYTES = [_divided(byte) for byte in range(256)]


@cache
def crc32c(data: bytes) -> int:
    """Return CRC32C, byte by byte."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder = remainder >> 8 ^ _OF_BYTES[(remainder ^ byte) & 255]
    return remainder ^ 0xFFFFFFFF


def stored(data: bytes) -> bytes:
    """Return the checksum of data as a TFRecord file holds it (tfrecord.md of TensorFlow)."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def header(length: int) -> bytes:
    """Return the header of a record that says to be so long, with its checksum."""
    data = struct.pack("<Q", length)
    return data + stored(data)


def framed(*records: bytes) -> bytes:
    """Return a TFRecord file of some records."""
    return b"".join(header(len(data)) + data + stored(data) for data in records)


def counted_near(
    data: bytes, *, checksums: bool = True, lost: int = 0, report: Report = no_report
) -> FileContents:
    """Return what a file on a disk holds, of which the last bytes are lost once it is open."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data[: len(data) - lost])
        source = LocalSource(file, "records", len(data))
        return count_tfrecord(source, checksums=checksums, report=report)


def counted_far(data: bytes, *, checksums: bool = True) -> FileContents:
    """Return what a remote file holds."""
    return count_tfrecord(far(data), checksums=checksums)


def records_read(path: Path, compression: str = "") -> tuple[int, str | None]:
    """Return how many records TensorFlow reads of a file, and what it says if it gives up.

    It is what `tf.data.TFRecordDataset` runs, which Python traces as a function for each file.
    """
    import tensorflow as tf

    file = tf.raw_ops.TFRecordDataset(
        filenames=[str(path)], compression_type=compression, buffer_size=1 << 18
    )
    num_read = 0
    try:
        for _ in tf.data.experimental.from_variant(file, tf.TensorSpec((), tf.string)):
            num_read += 1
    except tf.errors.OpError as error:
        return num_read, str(error)
    return num_read, None


_READ_BY_TENSORFLOW = Path(__file__).with_name("read_records.txt").read_text("utf-8")


def read_by_tensorflow(paths: Sequence[Path]) -> list[tuple[int, str | None] | int]:
    """Return what TensorFlow does with each file, in a process of its own.

    That is how many records it reads and what it then says, or the signal that ended it; SIGALRM
    after four seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "read.py")
        script.write_text(_READ_BY_TENSORFLOW)
        names = json.dumps([str(path) for path in paths])
        (ran,) = forking_python().run([[script, names]], Path(folder))
    assert ran.code == 0, ran.errors
    answers = map(json.loads, ran.out.splitlines())
    return [tuple(answer) if isinstance(answer, list) else answer for answer in answers]
