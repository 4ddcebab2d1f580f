"""ArrayRecord files, sound and damaged, beside what their library hands out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.records import array_record
from shardctl.records.array_record import count_array_record, read_array_record
from shardctl.records.contents import FileContents
from tests.byte_sources import far

RECORDS = [bytes([index]) * (50 + index) for index in range(40)]


@pytest.fixture(params=[1, 8])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    from array_record.python.array_record_module import ArrayRecordWriter

    path = tmp_path / "records"
    writer = ArrayRecordWriter(str(path), f"group_size:{request.param}")
    for record in RECORDS:
        writer.write(record)
    writer.close()
    return path


def read(path: Path, **options: Any) -> FileContents:
    return read_array_record(str(path), num_bytes=path.stat().st_size, **options)


def by_the_library(path: Path) -> list[bytes] | None:
    from array_record.python.array_record_module import ArrayRecordReader

    try:
        reader = ArrayRecordReader(str(path))
        try:
            records: list[bytes] = reader.read_all()
        finally:
            reader.close()
    except RuntimeError:
        return None
    return records


def first_bad_by_the_library(path: Path) -> int:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path))
    try:
        for index in range(len(RECORDS)):
            try:
                reader.read(index, index + 1)
            except RuntimeError:
                return index
    finally:
        reader.close()
    raise AssertionError("all can be read")


def test_a_sound_file(path: Path) -> None:
    report: list[int] = []
    found = read(path, report=report.append)
    size = path.stat().st_size
    assert (found.num_records, found.damage, found.checked) == (40, None, "checksums")
    assert (found.num_bytes_read, sum(report)) == (size, size)
    counted = read(path, checksums=False)
    assert (counted.num_records, counted.checked, counted.num_bytes_read) == (40, "framing", 0)


@pytest.mark.long
def test_a_changed_byte_is_found_wherever_the_library_reads(path: Path, tmp_path: Path) -> None:
    data, other = path.read_bytes(), tmp_path / "changed"
    used = len(data.rstrip(b"\0"))
    seen = 0
    for byte in [*range(0, min(3000, used), 61), *range(65_536, len(data), 2311)]:
        damaged = bytearray(data)
        damaged[byte] ^= 16
        other.write_bytes(damaged)
        found, records = read(other), by_the_library(other)
        assert (found.damage is None) == (records is not None), byte
        if records is not None:
            assert records == RECORDS  # a byte that no reader reads
            continue
        seen += 1
        assert found.damage is not None
        assert found.damage.kind == "broken"
        if found.damage.record is not None:
            assert found.damage.record == first_bad_by_the_library(other)
            assert found.damage.byte is not None
            assert found.damage.byte <= byte
            assert not found.whole
    assert seen > 10


def test_a_file_that_is_cut_off_is_refused(path: Path, tmp_path: Path) -> None:
    data, other = path.read_bytes(), tmp_path / "cut"
    for cut in [*range(0, 400, 7), *range(400, len(data), 3001), len(data) - 1]:
        other.write_bytes(data[:cut])
        found = read(other)
        assert found.damage is not None, cut
        assert found.damage.text
    other.write_bytes(b"")
    assert "empty" in str(read(other).damage)
    other.write_bytes(data + b"trailing")
    assert read(other).damage is not None


def test_the_first_bad_record_is_found_among_many(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(array_record, "_BLOCK", path.stat().st_size // 3)  # 13 records at a time
    data = bytearray(path.read_bytes())
    # The last chunk with records begins somewhere before the padding of the block.
    end = len(bytes(data[:65_536]).rstrip(b"\0"))
    for byte in range(end - 1, 0, -1):
        damaged = bytearray(data)
        damaged[byte] ^= 1
        path.write_bytes(damaged)
        found = read(path)
        if found.damage is not None and found.damage.record is not None:
            assert found.damage.record == first_bad_by_the_library(path) > 13
            return
    raise AssertionError("no byte belongs to a record")


def test_a_missing_library_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "array_record.python", hidden)
    with pytest.raises(MissingDependencyError, match=r"pip install 'array-record>=0.5'"):
        read(path)


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 5, 3000, 200_000])
@pytest.mark.parametrize("options", ["group_size:1", "group_size:8,uncompressed"])
def test_the_footer_of_a_file_far_away_is_fetched_alone(
    tmp_path: Path, count: int, options: str
) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    path = tmp_path / "many"
    if count == 200_000 and options == "group_size:1":
        options = "group_size:1000,uncompressed"
    writer = ArrayRecordWriter(str(path), options)
    for index in range(count):
        writer.write(b"%d" % index * 9)
    writer.close()
    source = far(path.read_bytes())
    found = count_array_record(source)
    assert (found.num_records, found.damage, found.checked) == (count, None, "framing")
    assert found.num_bytes_read <= source.num_bytes_read
    if count == 200_000:
        assert source.num_bytes_read < source.num_bytes / 2
    report: list[int] = []
    checked = count_array_record(far(path.read_bytes()), checksums=True, report=report.append)
    assert (checked.num_records, checked.damage, checked.checked) == (count, None, "checksums")
    assert sum(report) == source.num_bytes
