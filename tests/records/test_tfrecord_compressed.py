"""Compressed TFRecord files, whole and damaged, beside what the real TensorFlow reads of them."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import google_crc32c
import pytest

from shardctl.records import tfrecord
from shardctl.records.contents import FileContents
from shardctl.records.tfrecord import compression_of, masked, opened
from tests.cases import FUZZ, add_cases, fuzzed, random_of_a_fuzz_run
from tests.record_files import counted_far, counted_near, framed, header, records_read

RECORDS = [bytes([index]) * (40 + 7 * index) for index in range(6)]
SOUND = framed(*RECORDS)
PACK: dict[str, Callable[[bytes], bytes]] = {"GZIP": gzip.compress, "ZLIB": zlib.compress}


def first_bad(contents: FileContents) -> tuple[str, int | None, int | None]:
    assert contents.damage is not None
    return contents.damage.kind, contents.damage.record, contents.damage.byte


def large(*records: bytes) -> bytes:
    extend = google_crc32c.extend
    return b"".join(
        header(len(data)) + data + struct.pack("<I", masked(extend(0, data))) for data in records
    )


class Reader:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, data: bytes, compression: str) -> tuple[int, bool]:
        self.path.write_bytes(data)
        num_read, said = records_read(self.path, compression)
        return num_read, said is not None

    def compare(self, data: bytes, compression: str) -> FileContents:
        num_read, failed = self.read(data, compression)
        found = counted_near(data)
        assert counted_far(data) == replace(found, num_bytes_read=mock.ANY)
        damage = found.damage
        if failed:
            assert damage is not None
        if damage is not None and damage.kind == "data":  # behind which we go on
            assert damage.record == num_read
        else:
            assert found.num_records == num_read, damage
        if damage is None or damage.kind != "data":
            framing = counted_near(data, checksums=False)
            assert (framing.num_records, framing.damage) == (found.num_records, damage)
        add_cases()
        return found


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "records")


@pytest.mark.parametrize("compression", PACK)
def test_what_tensorflow_compresses_is_counted(tmp_path: Path, compression: str) -> None:
    import tensorflow as tf

    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for record in RECORDS:
            writer.write(record)
    data = path.read_bytes()
    report: list[int] = []
    found = counted_near(data, report=report.append)
    assert (found.num_records, found.compression, found.damage) == (6, compression, None)
    assert (found.num_bytes, found.num_bytes_read, sum(report)) == (len(data),) * 3
    assert found.checked == "checksums"
    assert counted_near(data, checksums=False).num_records == 6


@pytest.mark.parametrize("compression", PACK)
def test_a_compressed_file_cut_off_anywhere(reader: Reader, compression: str) -> None:
    data = PACK[compression](SOUND)
    for cut in (*range(4, 30), *range(30, len(data) - 12, 15), *range(len(data) - 12, len(data))):
        kind, record, byte = first_bad(reader.compare(data[:cut], compression))
        assert kind == "cut"  # where TensorFlow is silent, too
        assert byte == len(framed(*RECORDS[:record]))


@pytest.mark.parametrize("compression", PACK)
def test_damage_inside_is_named_by_the_byte_inside(reader: Reader, compression: str) -> None:
    pack = PACK[compression]
    at = len(framed(*RECORDS[:2]))
    for byte, kind, whole in ((at + 3, "header", 2), (at + 20, "data", 6)):
        inside = bytearray(SOUND)
        inside[byte] ^= 1
        found = reader.compare(pack(bytes(inside)), compression)
        assert first_bad(found) == (kind, 2, at)
        assert found.num_records == whole
        assert found.damage is not None
        assert found.damage.text.startswith(
            f"record 2 at byte {at} of what is inside {compression}"
        )
    for cut in (at + 5, at + 12, at + 30):
        found = reader.compare(pack(SOUND[:cut]), compression)
        assert first_bad(found) == ("cut", 2, at)
    long = framed(*RECORDS[:2]) + header(2**60) + b"abc"
    for checksums in (True, False):
        found = counted_near(pack(long), checksums=checksums)
        assert first_bad(found) == ("too-long", 2, at)
        assert f"its length is {2**60}, and 3 bytes are left" in str(found.damage)


def test_members_of_gzip_follow_one_another_as_tensorflow_reads_them(reader: Reader) -> None:
    pack, empty = gzip.compress, gzip.compress(b"")
    whole = reader.compare(pack(SOUND[:100]) + pack(SOUND[100:101]) + pack(SOUND[101:]), "GZIP")
    assert (whole.num_records, whole.damage) == (6, None)
    assert reader.compare(pack(SOUND) + empty, "GZIP").damage is None
    # Behind an empty member it reads nothing, unless the file goes on beyond its buffer.
    for data in (empty + pack(SOUND), pack(framed(*RECORDS[:3])) + empty + pack(SOUND)):
        found = reader.compare(data, "GZIP")
        assert found.num_records in (0, 3)
        assert found.damage is not None
        assert (found.damage.kind, found.damage.record) == ("broken", found.num_records)
        assert "TensorFlow reads no further than byte" in found.damage.text
    many = large(*(random.Random(1).randbytes(100_000) for _ in range(4)))
    assert reader.compare(empty + pack(many, 0), "GZIP").num_records == 4


def test_what_follows_compressed_data(reader: Reader) -> None:
    packed, other = zlib.compress(SOUND), zlib.compress(framed(b"x"))
    for rest in (b"\0", b"garbage", bytes(100), other, bytes(600_000)):
        found = reader.compare(packed + rest, "ZLIB")  # in silence
        assert first_bad(found) == ("broken", 6, len(SOUND))
        assert f"byte {len(packed)} of the file, and {len(rest)} bytes are left" in str(
            found.damage
        )
    for rest in (b"\0", b"\x1f\x8b\x08", b"garbage garbage", bytes(100)):
        found = reader.compare(gzip.compress(SOUND) + rest, "GZIP")
        assert first_bad(found) == ("cut" if len(rest) < 4 else "broken", 6, len(SOUND))


def test_wrong_checksums_of_the_compressed_data(reader: Reader) -> None:
    for compression, places in (("GZIP", (-1, -4, -5, -8)), ("ZLIB", (-1, -4))):
        for place in places:
            data = bytearray(PACK[compression](SOUND))
            data[place] ^= 1
            found = reader.compare(bytes(data), compression)
            # TensorFlow hands out nothing of the piece in which it notices, nor do we count it.
            assert first_bad(found) == ("broken", 0, 0)
            assert f"its {compression} data are damaged behind byte 0" in str(found.damage)


def test_members_that_end_at_the_end_of_what_is_read_at_a_time(reader: Reader) -> None:
    last = gzip.compress(framed(b"last"))
    size = tfrecord.BUFFER - len(gzip.compress(large(bytes(tfrecord.BUFFER)), 0)) + tfrecord.BUFFER
    num_silent = 0
    for over in range(-3, 12):
        first = gzip.compress(large(bytes(size + over)), 0)
        assert len(first) == tfrecord.BUFFER + over
        found = reader.compare(first + last, "GZIP")
        assert (found.damage is None) == (found.num_records == 2)
        num_silent += found.num_records == 1
    assert num_silent > 5  # TensorFlow stops before the last member, and says nothing


def test_compression_is_told_by_what_can_be_decompressed() -> None:
    assert compression_of(gzip.compress(SOUND)[:20]) == "GZIP"
    for level in range(10):
        assert compression_of(zlib.compress(SOUND, level)) == "ZLIB"
    assert compression_of(b"") is None
    assert compression_of(b"\x78") is None
    plain = bytearray(framed(bytes(0x0178)))  # 78 01, what zlib writes at its lowest level
    plain[9] ^= 1
    assert compression_of(bytes(plain)) is None
    assert first_bad(counted_near(bytes(plain))) == ("header", 0, 0)
    assert opened(gzip.compress(SOUND)[:100], "GZIP") == SOUND[:12]
    assert opened(gzip.compress(b""), "GZIP") == b""
    assert opened(b"\x1f\x8b\x08 no gzip", "GZIP") is None


def test_little_memory_is_taken_for_much_that_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    data = gzip.compress(large(bytes(10_000_000)) * 4, 1)
    for checksums in (True, False):
        tracemalloc.start()
        assert counted_near(data, checksums=checksums).num_records == 4
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
        tracemalloc.stop()


def test_a_compressed_file_that_becomes_shorter() -> None:
    data = gzip.compress(large(random.Random(1).randbytes(600_000)), 0)
    for lost in (1, 300_000, 590_000):
        found = counted_near(data, lost=lost)
        assert first_bad(found) == ("cut", 0, 0)
        assert "became shorter" in str(found.damage)


def random_file(rng: random.Random, compression: str) -> bytes:
    pack: Any = PACK[compression]
    sizes = [rng.choice([0, 1, 9, 100, 3000, 3000, 90_000]) for _ in range(rng.randrange(1, 9))]
    inside = bytearray(large(*(rng.randbytes(size) * rng.randrange(2) for size in sizes)))
    if rng.random() < 0.3:
        inside[rng.randrange(len(inside))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.2:
        del inside[rng.randrange(len(inside)) :]
    cuts = sorted(rng.randrange(len(inside) + 1) for _ in range(rng.choice([0, 0, 1, 3])))
    pieces = [inside[a:b] for a, b in zip([0, *cuts], [*cuts, len(inside)], strict=True)]
    data = bytearray(b"".join(pack(bytes(piece), rng.choice([0, 1, 6])) for piece in pieces))
    kind = rng.randrange(5)
    if kind == 0:
        data[rng.randrange(3, len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(3, len(data)) :]
    elif kind == 2:
        data += rng.randbytes(rng.randrange(1, 40))
    return bytes(data)


def check_random_files(reader: Reader, rng: random.Random, count: int) -> None:
    for number in range(count):
        compression = "GZIP" if rng.random() < 0.7 else "ZLIB"
        data = random_file(rng, compression)
        if compression_of(data[:4096]) == compression:
            reader.compare(data, compression)
        else:  # the damage is where it says how it is compressed
            assert reader.read(data, compression)[0] == 0, number


@fuzzed(20, FUZZ)
def test_random_damage_is_found_as_tensorflow_finds_it(reader: Reader, num_cases: int) -> None:
    check_random_files(reader, random_of_a_fuzz_run(), num_cases)
