"""TFRecord files, sound and damaged, beside what TensorFlow reads."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.records import decompress as window
from shardctl.records import tfrecord
from shardctl.records.contents import FileContents
from shardctl.records.tfrecord import count_tfrecord
from shardctl.stores.stores import LocalSource
from tests.cases import FUZZ, add_cases, counted, fuzzed, random_of_a_fuzz_run, some
from tests.record_files import (
    counted_far,
    counted_near,
    framed,
    header,
    read_by_tensorflow,
    records_read,
    stored,
)

RECORDS = (b"abcde", b"", b"c" * 30)
ENDS = (0, 21, 37, 83)
SMALL = framed(*RECORDS)
TOO_LONG = (2**27, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 4, 2**64 - 1)


def read(data: bytes, *, checksums: bool = True) -> FileContents:
    found = counted_near(data, checksums=checksums)
    far = counted_far(data, checksums=checksums)
    assert replace(far, num_bytes_read=0) == replace(found, num_bytes_read=0)
    return found


def blocks_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name in ("_LOCAL", "_REMOTE"):
        monkeypatch.setattr(window, name, (size, size // 4, size // 4, size))
    monkeypatch.setattr(tfrecord, "_PIECE", size)


def first_bad(contents: FileContents) -> tuple[str, int | None, int | None]:
    assert contents.damage is not None
    return contents.damage.kind, contents.damage.record, contents.damage.byte


def record_at(byte: int) -> int:
    return sum(byte >= end for end in ENDS[1:])


def check_beside_tensorflow(
    tmp_path: Path, files: list[bytes], blind: Callable[[int], bool]
) -> None:
    paths = [tmp_path / str(number) for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    answers = [records_read(path) for path in paths]
    for number, (data, (num_read, said)) in enumerate(zip(files, answers, strict=True)):
        damage = read(data).damage
        if damage is None:
            assert said is None, (number, said)
        elif blind(number):
            assert (damage.kind, said) == ("cut", None), (number, said)
            assert damage.record == num_read
        else:
            assert said is not None, number
            assert damage.record == num_read
            place = re.search(r"record at (\d+)", said)
            assert place is not None, said
            assert int(place[1]) in (damage.byte, (damage.byte or 0) + 12)


def test_what_tensorflow_writes_is_sound(tmp_path: Path) -> None:
    import tensorflow as tf

    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in RECORDS:
            writer.write(record)
    assert path.read_bytes() == SMALL
    assert read(SMALL) == FileContents(
        num_records=3, num_bytes=83, num_bytes_read=83, checked="checksums"
    )


def walked(data: bytes, *, checksums: bool) -> tuple[int, tuple[str, int, int] | None]:
    position = num_records = 0
    first = None
    while position < len(data):
        here, head = (num_records, position), data[position : position + 12]
        if len(head) < 12:
            return num_records, first or ("cut", *here)
        if head[8:] != stored(head[:8]):
            return num_records, first or ("header", *here)
        length = int.from_bytes(head[:8], "little")
        end = position + length + 16
        if end > len(data):
            kind = "too-long" if end - len(data) > 2**26 + 4 else "cut"
            return num_records, first or (kind, *here)
        if checksums and stored(data[position + 12 : end - 4]) != data[end - 4 : end]:
            first = first or ("data", *here)
        num_records, position = num_records + 1, end
    return num_records, first


@pytest.mark.parametrize(("length", "kind"), [(2**26, "cut"), (2**26 + 1, "too-long")])
def test_64_mib_may_be_missing_and_not_a_byte_more(length: int, kind: str) -> None:
    for there in (b"", b"abc"):
        damage = some(read(header(length + len(there)) + there).damage)
        assert damage.kind == kind


def runs_of_records(rng: random.Random) -> bytes:
    sizes: list[int] = []
    for _ in range(rng.randrange(1, 7)):
        sizes += [rng.choice([0, 1, 5, 20, 90, 300])] * rng.choice([1, 1, 2, 70, 300])
    data = bytearray(framed(*(bytes([size % 251]) * size for size in sizes)))
    kind = rng.randrange(4)
    if kind == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        place = rng.randrange(len(data))
        data[place:place] = header(rng.choice([0, 5, 20, 2**26 + 12, 2**60]))
    return bytes(data)


def check_runs(monkeypatch: pytest.MonkeyPatch, rng: random.Random, count: int) -> None:
    for _ in range(count):
        data = runs_of_records(rng)
        for checksums in (True, False):
            num_records, first = walked(data, checksums=checksums)
            for size in (128, 1000, 4096, 1 << 18):
                with monkeypatch.context() as patched:
                    blocks_of(patched, size)
                    found = read(data, checksums=checksums)
                bad = None if found.damage is None else first_bad(found)
                assert (found.num_records, bad) == (num_records, first), (size, checksums)
                add_cases()


@fuzzed(40, FUZZ // 4)
def test_runs_of_equal_records_are_followed(monkeypatch: Any, num_cases: int) -> None:
    check_runs(monkeypatch, random_of_a_fuzz_run(), num_cases)


def test_each_changed_byte_is_found_as_tensorflow_finds_it(tmp_path: Path) -> None:
    files = []
    for byte in range(len(SMALL)):
        for mask in (1, 128, 255):
            damaged = bytearray(SMALL)
            damaged[byte] ^= mask
            files.append(bytes(damaged))
            record = record_at(byte)
            kind = "header" if byte - ENDS[record] < 12 else "data"
            found = read(files[-1])
            assert first_bad(found) == (kind, record, ENDS[record])
            # Behind damaged data the records go on.
            assert found.num_records == (record if kind == "header" else 3)
            framing = read(files[-1], checksums=False)
            assert (framing.damage is None) == (kind == "data")
    # TensorFlow is asked about each byte, with one mask after the other.
    asked = [data for at, data in enumerate(files) if at % 3 == at // 3 % 3]
    check_beside_tensorflow(tmp_path, asked, lambda number: False)


def test_a_file_cut_off_anywhere_has_the_records_before_the_cut(tmp_path: Path) -> None:
    files = [SMALL[:cut] for cut in range(len(SMALL) + 1)]
    for cut, data in enumerate(files):
        for checksums in (True, False):
            found = read(data, checksums=checksums)
            assert found.num_records == record_at(cut)
            if cut in ENDS:
                assert found.damage is None
            else:
                assert first_bad(found) == ("cut", record_at(cut), ENDS[record_at(cut)])
    # TensorFlow takes a file that ends inside the header of a record for one that ends before it.
    check_beside_tensorflow(tmp_path, files, lambda cut: cut - ENDS[record_at(cut)] < 12)


@pytest.mark.parametrize("length", TOO_LONG)
def test_lengths_that_end_tensorflow_are_said(length: int) -> None:
    for checksums in (True, False):
        found = read(SMALL + header(length) + b"abc", checksums=checksums)
        assert first_bad(found) == ("too-long", 3, 83)
        assert str(length) in str(found.damage)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_such_lengths_end_tensorflow(tmp_path: Path) -> None:
    paths = [
        _written(tmp_path / str(length), SMALL + header(length) + b"abc") for length in TOO_LONG
    ]
    *answers, good = read_by_tensorflow([*paths, _written(tmp_path / "good", SMALL)])
    assert good == (3, None)
    killed = [length for length, answer in zip(TOO_LONG, answers, strict=True) if answer == 11]
    assert 2**40 in killed  # SIGSEGV
    for answer in answers:
        assert isinstance(answer, int) or (answer[0] == 3 and answer[1] is not None)


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def damaged_files(rng: random.Random, count: int) -> list[bytes]:
    files = []
    for _ in range(count):
        sizes = [rng.choice([0, 1, 9, 100, 3000]) for _ in range(rng.randrange(1, 6))]
        data = bytearray(framed(*(rng.randbytes(size) for size in sizes)))
        kind = rng.randrange(4)
        if kind == 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            first = rng.randrange(len(data))
            del data[first : first + rng.randrange(1, 40)]
        elif kind == 2:
            first = rng.randrange(len(data))
            data[first:first] = rng.randbytes(rng.randrange(1, 40))
        files.append(bytes(data))
    return files


def check_files(tmp_path: Path, files: list[bytes]) -> None:
    def blind(number: int) -> bool:
        damage = read(files[number]).damage
        return damage is not None and len(files[number]) - (damage.byte or 0) < 12

    check_beside_tensorflow(tmp_path, list(counted(files)), blind)


@fuzzed(2, max(FUZZ // 20, 10))
def test_random_damage_is_found_as_tensorflow_finds_it(tmp_path: Path, num_cases: int) -> None:
    rng = random_of_a_fuzz_run()
    for _ in range(num_cases):
        check_files(tmp_path, damaged_files(rng, 20))


def test_all_records_with_damaged_data_are_counted() -> None:
    data = bytearray(SMALL)
    data[15] ^= 1
    data[60] ^= 1
    found = read(bytes(data))
    assert first_bad(found) == ("data", 0, 0)
    assert found.damage is not None
    assert found.damage.text == (
        "record 0 at byte 0: its data does not match its checksum; 2 records have damaged data"
    )


@pytest.mark.parametrize("block", [64, 1 << 18])
def test_a_file_that_becomes_shorter_meanwhile_is_cut_off(monkeypatch: Any, block: int) -> None:
    blocks_of(monkeypatch, block)
    data = framed(b"a" * 50, b"b" * 300, b"c" * 20)
    for lost in range(1, len(data)):
        found = counted_near(data, lost=lost)
        assert found.damage is not None
        assert (found.damage.kind, "became shorter" in found.damage.text) == ("cut", True)
        assert found.num_records == sum(len(data) - lost >= end for end in (66, 382))
        framing = some(counted_near(data, checksums=False, lost=lost).damage)
        assert framing.kind == "cut"
        assert "became shorter" in framing.text


def test_a_file_that_grows_is_read_up_to_the_size_that_it_had() -> None:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(SMALL + b"more")
        source = LocalSource(file, "records", len(SMALL))
        for checksums in (True, False):
            found = count_tfrecord(source, checksums=checksums)
            assert (found.num_records, found.damage) == (3, None)
