"""Parquet files, sound and damaged, with and without checksums, beside what pyarrow hands out."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.records.arrow import count_parquet
from shardctl.records.contents import FileContents
from tests.byte_sources import far

NUM_ROWS = 250


def written(*, checksums: bool, group: int = 100) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [bytes([index % 251]) * (index % 40) for index in range(NUM_ROWS)]
    sink = io.BytesIO()
    table = pa.table({"data": pa.array(rows, pa.binary())})
    parquet.write_table(table, sink, row_group_size=group, write_page_checksum=checksums)
    return sink.getvalue()


def read(data: bytes, **options: Any) -> FileContents:
    return count_parquet(far(data), **{"checksums": True, **options})


@pytest.mark.parametrize("checksums", [True, False])
def test_a_sound_file(checksums: bool) -> None:
    report: list[int] = []
    data = written(checksums=checksums)
    found = read(data, report=report.append)
    assert (found.num_records, found.damage) == (NUM_ROWS, None)
    assert found.checked == "decoded"
    assert (found.num_bytes_read, sum(report)) == (len(data), len(data))
    counted = read(data, checksums=False)
    assert (counted.num_records, counted.checked, counted.num_bytes_read) == (
        250,
        "framing",
        len(data),
    )


def decoded(data: bytes) -> list[bytes] | None:
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(io.BytesIO(data), page_checksum_verification=True)
    except (ArrowException, OSError):
        return None
    return [bytes(row or b"") for row in table.column(0).to_pylist()]


def contradicts_itself(data: bytes) -> bool:
    from pyarrow import parquet

    found = parquet.read_metadata(io.BytesIO(data))
    groups = (found.row_group(index) for index in range(found.num_row_groups))
    return bool(sum(group.num_rows for group in groups) != found.num_rows)


@pytest.mark.long
@pytest.mark.parametrize("checksums", [True, False])
def test_a_changed_byte_is_found_where_pyarrow_finds_it(checksums: bool) -> None:
    data = written(checksums=checksums)
    rows = decoded(data)
    unseen = 0
    for byte in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[byte] ^= 32
        found, now = read(bytes(damaged)), decoded(bytes(damaged))
        if now is None:
            assert found.damage is not None, byte
            assert found.damage.text
        else:
            damage = found.damage
            assert now != rows or damage is None or contradicts_itself(bytes(damaged)), byte
            unseen += now != rows and found.damage is None
    # Only with checksums is every changed value seen.
    assert (unseen == 0) == checksums


def test_the_first_bad_row_is_named() -> None:
    from pyarrow import parquet

    data = written(checksums=True)
    group = parquet.read_metadata(io.BytesIO(data)).row_group(1).column(0)
    damaged = bytearray(data)
    damaged[group.data_page_offset + group.total_compressed_size // 8] ^= 255
    found = read(bytes(damaged))
    assert found.damage is not None
    assert found.damage.record == 100
    assert not found.whole
    assert found.num_bytes_read < len(data)


_READ_ALL_FLIPS = """
import sys
from shardctl.records.arrow import count_parquet
from tests.byte_sources import far
data = sys.stdin.buffer.read()
for byte in range(len(data) - 360, len(data)):
    for mask in (1, 2, 4, 8, 32, 64, 96, 255):
        damaged = bytearray(data)
        damaged[byte] ^= mask
        count_parquet(far(bytes(damaged)), checksums=True)
"""


@pytest.mark.long
def test_no_changed_byte_of_a_footer_ends_the_process() -> None:
    import pyarrow as pa
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pa.table({"data": [bytes([n]) * n for n in range(5)]}), sink)
    command = [sys.executable, "-c", _READ_ALL_FLIPS]
    ran = subprocess.run(
        command,
        input=sink.getvalue(),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_file_that_is_cut_off_is_refused() -> None:
    data = written(checksums=False)
    for cut in range(0, len(data), 11):
        found = read(data[:cut])
        assert found.damage is not None
        assert found.num_records is None
    assert "empty" in str(read(b"").damage)
    assert read(data + b"trailing").damage is not None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "pyarrow", hidden)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyarrow>=15'"):
        read(b"PAR1")


def test_the_footer_of_a_file_far_away_is_fetched_alone() -> None:
    data = written(checksums=True)
    import pyarrow as pa
    from pyarrow import parquet

    sink = io.BytesIO()
    rng = random.Random(17)
    table = pa.table({"data": [rng.randbytes(1000) for _ in range(5000)]})
    parquet.write_table(table, sink, compression="none", row_group_size=500)
    for content, expected in ((data, NUM_ROWS), (sink.getvalue(), 5000)):
        source, report = far(content), list[int]()
        found = count_parquet(source, report=report.append)
        assert (found.num_records, found.damage) == (expected, None)
        assert found.num_bytes_read == source.num_bytes_read == sum(report)
        assert found.num_bytes_read <= min(len(content), 256 << 10)
        checked = count_parquet(far(content), checksums=True)
        assert (checked.num_records, checked.damage) == (expected, None)


def test_a_footer_that_contradicts_itself_is_named() -> None:
    data, num_found = written(checksums=False), 0
    for byte in range(len(data) - 300, len(data)):
        damaged = bytearray(data)
        damaged[byte] ^= 32
        found = read(bytes(damaged), checksums=False)
        if found.damage is not None and "rows, and" in found.damage.text:
            assert contradicts_itself(bytes(damaged))
            num_found += 1
    assert num_found
