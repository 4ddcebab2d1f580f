"""Arrow streams and files, sound and damaged, beside what pyarrow reads."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from shardctl.errors import MissingDependencyError
from shardctl.records.arrow import count_arrow
from shardctl.records.contents import FileContents
from tests.byte_sources import RECORDED, far, near
from tests.cases import FUZZ, counted, fuzzed, in_this_run, random_of_a_fuzz_run, some

END = b"\xff\xff\xff\xff\0\0\0\0"


def written(*lengths: int, footer: bool = False, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    schema = pa.schema({"x": pa.int64(), "t": pa.string()})
    opened = pa.ipc.new_file if footer else pa.ipc.new_stream
    with opened(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for length in lengths:
            rows = {"x": list(range(length)), "t": [f"é{n}" for n in range(length)]}
            writer.write_batch(pa.record_batch(rows, schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(data: bytes, **options: Any) -> FileContents:
    return count_arrow(near(data), **options)


def rows_by_pyarrow(data: bytes) -> int | None:
    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    try:
        table = opened(pa.BufferReader(data)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return int(table.num_rows)


RECORDED_ROWS = {
    "hugging_face_cache/json-train-00000-of-00002.arrow": 11,
    "hugging_face_cache/json-train-00001-of-00002.arrow": 12,
    "hugging_face_cache/json-test.arrow": 11,
    "hugging_face_saved/data-00000-of-00002.arrow": 3,
    "hugging_face_saved/data-00001-of-00002.arrow": 2,
}


@pytest.mark.parametrize("checksums", [True, False])
def test_what_hugging_face_wrote(checksums: bool) -> None:
    for name, expected in RECORDED_ROWS.items():
        found = read((RECORDED / name).read_bytes(), checksums=checksums)
        assert (found.num_records, found.damage) == (expected, None)
        assert found.checked == ("decoded" if checksums else "framing")


OPTIONS: list[dict[str, Any]] = [
    {},
    {"footer": True},
    {"compression": "zstd"},
    {"footer": True, "compression": "lz4"},
    {"use_legacy_format": True},
    {"footer": True, "use_legacy_format": True},
    {"metadata_version": pa.ipc.MetadataVersion.V4},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_any_batches_are_counted(options: dict[str, Any]) -> None:
    rng = random.Random(13)
    for _ in counted(range(12)):
        lengths = [rng.choice([0, 1, 7, 3000]) for _ in range(rng.randrange(6))]
        data = written(*lengths, **options)
        for source in (near(data), far(data)):
            for checksums in (True, False):
                report: list[int] = []
                found = count_arrow(source, checksums=checksums, report=report.append)
                assert (found.num_records, found.damage) == (sum(lengths), None)
                assert found.num_bytes == len(data)
        assert sum(lengths) == rows_by_pyarrow(data)


@pytest.mark.long
@pytest.mark.parametrize("footer", [True, False])
def test_bodies_are_not_read(footer: bool) -> None:
    data = written(400_000, 400_000, 400_000, footer=footer)
    source = near(data)
    found = count_arrow(source)
    assert found.num_records == 1_200_000
    assert source.num_bytes_read == found.num_bytes_read < 400_000 < len(data) / 30


def test_a_footer_that_names_other_batches_than_there_are_is_named() -> None:
    data = written(3, 2, 4, footer=True)
    length = int.from_bytes(data[-10:-6], "little")
    count = data.rindex((3).to_bytes(4, "little"), len(data) - 10 - length, -10)
    found = read(data[:count] + b"\2" + data[count + 1 :])
    assert "its footer names 2 batches, and 3 are there" in str(found.damage)


@pytest.mark.parametrize("footer", [True, False])
@pytest.mark.parametrize("checksums", [True, False])
def test_a_file_that_is_cut_off_anywhere_is_named(footer: bool, checksums: bool) -> None:
    data = written(3, 2, 4, footer=footer)
    for cut in counted(range(len(data))):
        found = read(data[:cut], checksums=checksums)
        assert found.damage is not None, cut
        assert found.damage.byte is not None
        assert found.num_records in (None, 0, 3, 5, 9)
        # pyarrow takes a stream without its mark of the end for whole.
        if rows_by_pyarrow(data[:cut]) is not None:
            assert not footer
            assert "mark that ends" in found.damage.text or "length of a message" in str(found)


def test_the_first_bad_message_and_the_rows_before_it_are_named() -> None:
    whole, part = written(3, 2, 4), written(3, 2)
    cut = read(whole[: len(part) + 40])
    assert cut.damage is not None
    assert (cut.num_records, cut.damage.record) == (5, 5)
    assert (cut.damage.kind, cut.damage.byte) == ("cut", len(part) - len(END))
    assert part.endswith(END)
    behind = read(part + b"x")
    assert "data follows the end of the stream" in str(behind.damage)


_READ_ALL_CHANGES = """
import random, sys
from shardctl.records.arrow import count_arrow
from tests.byte_sources import near
data, rng = sys.stdin.buffer.read(), random.Random(15)
for _ in range(int(sys.argv[1])):
    damaged = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(len(data))] = rng.randrange(256)
    count_arrow(near(bytes(damaged)), checksums=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"footer": True}, {"compression": "lz4"}])
def test_no_changed_bytes_end_the_process(options: dict[str, Any]) -> None:
    command = [sys.executable, "-c", _READ_ALL_CHANGES, str(in_this_run(3000))]
    ran = subprocess.run(command, input=written(3, 9, **options), capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_what_is_no_arrow_file_is_said() -> None:
    for data, said in (
        (b"", "the file is empty"),
        (b"hello" * 99, "no Arrow stream"),
        (b"ARROW1" + bytes(200), "does not end as Arrow files do"),
        (b"ARROW1" + bytes(90) + b"ARROW1", "no Arrow stream"),
        (END, "no Arrow stream"),
    ):
        damage = some(read(data).damage)
        assert said in damage.text


def test_a_missing_library_is_named_where_contents_are_checked(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    data = (RECORDED / "hugging_face_cache" / "json-test.arrow").read_bytes()
    assert read(data).num_records == 11
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyarrow>=15'"):
        read(data, checksums=True)


@fuzzed(3000, 20 * FUZZ)
def test_changed_bytes_never_make_another_count_of_rows(num_cases: int) -> None:
    rng = random_of_a_fuzz_run()
    files = [written(3, 0, 9, 40, **options) for options in OPTIONS]
    for _ in counted(range(in_this_run(num_cases))):
        damaged = bytearray(rng.choice(files))
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        found, now = read(bytes(damaged)), rows_by_pyarrow(bytes(damaged))
        if found.damage is None and now is not None:
            assert found.num_records == now
        checked = read(bytes(damaged), checksums=True)
        if checked.damage is None:
            assert checked.num_records == now
