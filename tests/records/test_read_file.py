"""One file of any format: counted, refused, or what is in its place."""

from __future__ import annotations

import ast
import gzip
import os
import random
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import FILE_FORMATS
from shardctl.errors import MissingDependencyError
from shardctl.records.contents import FileContents, refused
from shardctl.records.read_file import FORMATS, count_file, format_of, why_not_read
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of
from tests.byte_sources import far, near
from tests.cases import counted, some
from tests.golden import assert_answers
from tests.record_files import framed
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset


def read(path: Path | str, file_format: str, *, checksums: bool = True) -> FileContents:
    file = StoredFile(path=str(path), num_bytes=0)
    return count_file(file, file_format, checksums=checksums, listed=False)


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
@pytest.mark.parametrize("checksums", [True, False])
def test_each_format_holds_what_was_written(
    tmp_path: Path, file_format: str, checksums: bool
) -> None:
    # More than 100 examples in a shard TFDS would write as fewer rows of Parquet.
    lengths = [0, 1, 40, 100]
    folder = build_dataset(tmp_path, splits={"train": lengths}, file_format=file_format)
    files = sorted(folder.glob("toy-train*"))
    found = [read(file, file_format, checksums=checksums) for file in files]
    assert [(contents.num_records, contents.damage) for contents in found] == [
        (length, None) for length in lengths
    ]
    files[3].write_bytes(files[3].read_bytes()[:-9])
    cut = read(files[3], file_format, checksums=checksums)
    assert cut.damage is not None
    assert cut.num_records == (99 if file_format == "tfrecord" else None)


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_is_no_file_is_not_opened(tmp_path: Path, file_format: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        found = {
            name: read(tmp_path / name, file_format).damage
            for name in ("fifo", "folder", "nowhere", "round", "device", "socket", "none")
        }
    assert {name: damage and (damage.kind, damage.text) for name, damage in found.items()} == {
        "fifo": ("not-a-file", "a FIFO or a device, not a file"),
        "folder": ("not-a-file", "a folder, not a file"),
        "nowhere": ("not-a-file", "a link to 'gone', which is not there"),
        "round": ("unreadable", "Too many levels of symbolic links"),
        "device": ("not-a-file", "a FIFO or a device, not a file"),
        "socket": ("not-a-file", "a FIFO or a device, not a file"),
        "none": ("missing", "missing"),
    }


def test_a_fifo_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records"
    path.write_bytes(framed(b"a"))
    status = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda name: status)
    damage = some(read(path, "tfrecord").damage)
    assert damage.kind == "not-a-file"


def test_a_file_that_the_system_cannot_open_or_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(5, "Input/output error")

    path = tmp_path / "records"
    path.write_bytes(framed(b"a"))
    monkeypatch.setattr(os, "open", refuse)
    damage = some(read(path, "tfrecord").damage)
    assert (damage.kind, damage.text) == ("unreadable", "Input/output error")
    damage = some(read("a\0b", "tfrecord").damage)
    assert damage.kind == "unreadable"


def stored(path: Path) -> StoredFile:
    return some(store_of(str(path)).status(str(path)))


def test_a_file_that_changed_since_it_was_listed_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(framed(b"a"))
    listed = stored(path)
    assert count_file(listed, "tfrecord").num_records == 1
    path.write_bytes(framed(b"a") * 2)
    for file_format in ("tfrecord", "array_record", "parquet"):
        found = count_file(listed, file_format)
        assert found.num_records is None
        assert found.damage is not None
        assert found.damage.kind == "unreadable"
        assert found.damage.text.endswith("changed while it was read")
    path.unlink()
    damage = some(count_file(listed, "tfrecord").damage)
    assert damage.kind == "missing"
    os.mkfifo(path)
    damage = some(count_file(listed, "tfrecord").damage)
    assert (damage.kind, damage.text) == ("not-a-file", "a FIFO or a device, not a file")


def test_what_ends_the_reading_is_passed_on(tmp_path: Path) -> None:
    class EndedError(Exception):
        pass

    def report(count: int) -> None:
        raise EndedError

    (tmp_path / "records").write_bytes(framed(b"a"))
    with pytest.raises(EndedError):
        count_file(stored(tmp_path / "records"), "tfrecord", report=report)


def test_what_a_format_did_not_expect_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> FileContents:
        raise RuntimeError("the library\nsays so")

    monkeypatch.setitem(FORMATS, "tfrecord", replace(FORMATS["tfrecord"], count=fail))
    (tmp_path / "records").write_bytes(framed(b"a"))
    damage = some(count_file(stored(tmp_path / "records"), "tfrecord").damage)
    assert damage.kind == "unreadable"
    assert damage.text.startswith("the library")
    assert "\n" not in damage.text


def test_a_missing_package_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "records").write_bytes(b"PAR1")
    with pytest.raises(MissingDependencyError, match="pip install"):
        count_file(stored(tmp_path / "records"), "parquet", checksums=True)


def test_the_format_is_told_by_the_name_and_else_by_the_first_bytes(tmp_path: Path) -> None:
    for name, data, expected in (
        ("toy-train.tfrecord-00000-of-00001", b"", "tfrecord"),
        ("part-00000", framed(b"a"), "tfrecord"),
        ("part-00001", gzip.compress(framed(b"a")), "tfrecord"),
        ("part-00002", b"some text of which nobody knows the format", None),
        ("part-00003", b"", None),
        ("a.tfrecord.parquet", b"", "parquet"),
        ("b.parquet", framed(b"a"), "parquet"),
        ("c.TFRecords", b"", "tfrecord"),
        ("d.tfrecordings", b"", None),
    ):
        (tmp_path / name).write_bytes(data)
        assert format_of(stored(tmp_path / name)) == expected, name


def test_formats_that_are_not_read_say_why() -> None:
    assert {name for name in FILE_FORMATS if why_not_read(name) is None} == {*WRITABLE_FORMATS}
    assert why_not_read("bagz") == "bagz files are not read"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_any_bytes_have_an_answer(name: str, tmp_path: Any) -> None:
    rng, counter = random.Random(18), FORMATS[name]
    beginnings = [b"", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", framed(b"a"), b"\x1f\x8b\x08"]
    beginnings += [b"\x28\xb5\x2f\xfd", b"BZh91AY&SY", bytes(512), b"\3\0\0\0\x40\0\0\0"]
    for _ in counted(range(60)):
        data = rng.choice(beginnings) + rng.randbytes(rng.choice([0, 5, 600, 70_000]))
        data += rng.choice([b"", b"PAR1", b"ARROW1"])
        (tmp_path / "a").write_bytes(data)
        for source in (near(data), far(data)):
            if source.local_path is not None:
                source.local_path = str(tmp_path / "a")
            found = counter.count(source)
            assert found.num_bytes == len(data)
            assert found.damage is not None or found.num_records is not None
            assert found.num_bytes_read <= len(data)


def test_another_number_or_compression_is_a_finding() -> None:
    def answer(question: str) -> object:
        facts, read_as = ast.literal_eval(question)
        return FileContents(**facts).finding("f", 3, "train", read_as)

    assert_answers(Path(__file__).parent / "golden" / "findings.txt", answer)


def test_what_a_library_says_is_one_safe_line() -> None:
    error = ValueError("bad \x1b[31m magic\nat line 3")
    assert refused(error, record=4).text == "record 4: bad \\x1b[31m magic"
    assert refused(ValueError("")).text == "it cannot be read"
    assert refused(ValueError("too small"), empty=True).text == "the file is empty"
