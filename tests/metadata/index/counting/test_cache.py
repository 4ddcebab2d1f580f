"""Counts of earlier runs: taken for files that are the same, and never in the way."""

from __future__ import annotations

import json
import os
import stat
import zlib
from pathlib import Path

import pytest

from shardctl.metadata.index import count as module
from shardctl.metadata.index.count import Known
from shardctl.metadata.index.workers import FileToCount
from shardctl.records.contents import Compression, FileContents
from shardctl.stores.store import StoredFile

OLD = "mtime:1700000000000000001"


def task(
    path: str = "/d/a", *, num_bytes: int = 9, version: str = OLD, **kind: object
) -> FileToCount:
    file = StoredFile(path=path, num_bytes=num_bytes, version=version)
    return FileToCount(index=0, file=file, **{"file_format": "tfrecord", **kind})  # type: ignore[arg-type]


def kept(
    folder: Path, *tasks: FileToCount, num_records: int = 5, compression: Compression | None = None
) -> Known:
    known = Known(folder, None)
    for one in tasks:
        known.keep(one, FileContents(num_records=num_records, compression=compression))
    known.write()
    return known


def found(folder: Path, *tasks: FileToCount) -> list[int | None]:
    known = Known(folder, None)
    answers = [known.find(one) for one in tasks]
    assert known.warnings == ()
    return [None if answer is None else answer.num_records for answer in answers]


def test_a_count_is_known_of_the_same_file_alone(tmp_path: Path) -> None:
    assert kept(tmp_path, task(), task("/d/b"), num_records=7).warnings == ()
    assert found(tmp_path, task("/d/b"), task("/d/c"), task()) == [7, None, 7]
    others = (
        task(num_bytes=10),
        task(version="mtime:1700000000000000002"),
        task(version=""),
        task("/e/a"),
        task("a"),
        task(file_format="parquet"),
    )
    assert found(tmp_path, *others) == [None] * len(others)
    kept(tmp_path, task("/d/z"))
    assert found(tmp_path, task("/d/z"), task()) == [5, 7]


def test_checked_contents_serve_those_who_count_and_not_the_reverse(tmp_path: Path) -> None:
    kept(tmp_path, task("/d/checked", checksums=True), task("/d/counted"))
    asked = [task("/d/checked"), task("/d/counted", checksums=True)]
    assert found(tmp_path, *asked) == [5, None]


def test_names_of_any_bytes_are_known(tmp_path: Path) -> None:
    names = ["/d/\udcff", "/d/a'b\"", "/d/é", "gs://b/a", "/d/\n", "/\udcff/a"]
    kept(tmp_path, *map(task, names))
    assert found(tmp_path, *map(task, names)) == [5] * len(names)


def test_compression_is_kept(tmp_path: Path) -> None:
    kept(tmp_path, task(), compression="GZIP")
    answer = Known(tmp_path, None).find(task())
    assert answer == FileContents(num_records=5, num_bytes=9, compression="GZIP")


def test_no_flipped_bit_becomes_a_wrong_count(tmp_path: Path) -> None:
    paths = [f"/d/{number}" for number in range(40)]
    kept(tmp_path, *map(task, paths))
    (path,) = (tmp_path / "counts").iterdir()
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 4
        path.write_bytes(changed)
        assert found(tmp_path, *map(task, paths)) == [None] * 40
    for cut in (b"", data[:8], data[:50], data[:-1], b"\0" * 90):
        path.write_bytes(cut)
        assert found(tmp_path, task("/d/1")) == [None]
    kept(tmp_path, task("/d/1"))
    assert found(tmp_path, task("/d/1")) == [5]


def test_what_is_sealed_and_of_another_form_is_not_believed(tmp_path: Path) -> None:
    kept(tmp_path, task())
    (path,) = (tmp_path / "counts").iterdir()
    others: tuple[object, ...] = (
        [],
        {"a": 5},
        {"a": []},
        {"a": ["tfrecord", 0, 9, OLD, "5", None]},
        None,
    )
    for rows in others:
        body = json.dumps(rows).encode()
        path.write_bytes(b"%08x\n%b" % (zlib.crc32(body), body))
        assert found(tmp_path, task()) == [None]


@pytest.mark.parametrize("is_root", [os.geteuid() == 0])
def test_a_read_only_folder_is_read(tmp_path: Path, is_root: bool) -> None:
    kept(tmp_path, task())
    (tmp_path / "counts").chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        known = kept(tmp_path, task("/d/b"))
    finally:
        (tmp_path / "counts").chmod(0o700)
    assert found(tmp_path, task()) == [5]
    assert bool(known.warnings) != is_root


def test_without_a_place_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null/x")):
        (said,) = kept(folder, task()).warnings
        assert said.startswith("counts are not kept in ")
        assert said.isprintable()
    assert kept(None, task()).warnings == ()  # type: ignore[arg-type]


def test_few_folders_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FOLDERS", 3)
    for number in range(9):
        kept(tmp_path, task(f"/{number}/a"))
    assert len(list((tmp_path / "counts").iterdir())) == 3
    assert found(tmp_path, task("/8/a"), task("/0/a")) == [5, None]
