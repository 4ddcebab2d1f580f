"""Counts of earlier runs: taken for files that are the same, and never in the way."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.counting import known as module
from shardctl.readers.index.counting.known import FILENAME, KnownCounts
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import Damage, FileContents

OLD = "mtime:1700000000000000001"


def task(
    path: str = "/d/a", *, num_bytes: int = 9, version: str = OLD, **kind: object
) -> FileToCount:
    file = StoredFile(path=path, num_bytes=num_bytes, version=version)
    return FileToCount(index=0, file=file, **{"file_format": "tfrecord", **kind})  # type: ignore[arg-type]


def whole(num_records: int = 5) -> FileContents:
    return FileContents(num_records=num_records, num_bytes=9)


def kept(folder: Path, *tasks: FileToCount, num_records: int = 5) -> None:
    with KnownCounts(folder) as known:
        for one in tasks:
            known.keep(one, whole(num_records))
    assert known.warnings == []


def found(folder: Path, *tasks: FileToCount) -> list[int | None]:
    with KnownCounts(folder) as known:
        answers = known.find(tasks)
    assert known.warnings == []
    return [None if answer is None else answer.num_records for answer in answers]


def test_a_count_is_known_of_the_same_file_alone(tmp_path: Path) -> None:
    kept(tmp_path, task(), task("/d/b"), num_records=7)
    assert found(tmp_path, task("/d/b"), task("/d/c"), task()) == [7, None, 7]
    others = (
        task(num_bytes=10),
        task(version="mtime:1700000000000000002"),
        task(version=""),
        task("/e/a"),
        task("a"),
        task(file_format="parquet"),
    )
    assert found(tmp_path, *others) == [None] * 6


def test_a_new_version_takes_the_place_of_the_old(tmp_path: Path) -> None:
    kept(tmp_path, task())
    kept(tmp_path, task(version="etag:x"), num_records=6)
    assert found(tmp_path, task(), task(version="etag:x")) == [None, 6]


def test_checked_contents_serve_those_who_count_and_not_the_reverse(tmp_path: Path) -> None:
    kept(tmp_path, task("/d/checked", checksums=True), task("/d/counted"))
    asked = [task("/d/checked"), task("/d/counted", checksums=True)]
    assert found(tmp_path, *asked) == [5, None]


def test_broken_files_and_those_without_a_version_are_not_kept(tmp_path: Path) -> None:
    with KnownCounts(tmp_path) as known:
        broken = FileContents(num_records=3, damage=Damage(kind="cut", text="cut"))
        known.keep(task(), broken)
        known.keep(task("/d/none"), FileContents(num_records=None))
        known.keep(task("/d/dateless", version=""), whole())
    assert found(tmp_path, task(), task("/d/none"), task("/d/dateless", version="")) == [None] * 3


def test_names_of_any_bytes_are_known(tmp_path: Path) -> None:
    names = ["/d/\udcff", "/d/a'b\"", "/d/é", "gs://b/a", "/d/\n"]
    kept(tmp_path, *map(task, names))
    assert found(tmp_path, *map(task, names)) == [5] * len(names)


def test_compression_is_kept(tmp_path: Path) -> None:
    with KnownCounts(tmp_path) as known:
        known.keep(task(), FileContents(num_records=5, compression="GZIP"))
    with KnownCounts(tmp_path) as known:
        (answer,) = known.find([task()])
    assert answer is not None
    assert answer.compression == "GZIP"


def test_more_files_than_a_query_takes(tmp_path: Path) -> None:
    tasks = [task(f"/d/{number}") for number in range(2500)]
    kept(tmp_path, *tasks)
    assert found(tmp_path, *tasks, task("/d/none")) == [5] * 2500 + [None]


@pytest.mark.long
def test_what_was_kept_is_there_after_a_kill(tmp_path: Path) -> None:
    script = (
        "import os, time\n"
        "from tests.readers.index.counting.test_cache import *\n"
        f"known = KnownCounts(Path({str(tmp_path)!r}))\n"
        "known.keep(task(), whole())\n"
        "time.sleep(1.1)\n"
        "known.keep(task('/d/b'), whole())\n"  # a second later: both are written
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[4]
    )
    assert ended.returncode == -9
    assert found(tmp_path, task(), task("/d/b")) == [5, 5]


def test_several_at_once(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for turn in range(5):
            kept(tmp_path, *(task(f"/d{number}/{turn}-{i}") for i in range(50)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = [task(f"/d{n}/{t}-{i}") for n in range(4) for t in range(5) for i in range(50)]
    assert found(tmp_path, *asked) == [5] * 1000


def test_one_that_another_process_holds_is_waited_for_and_then_gone_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, task())
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    other = sqlite3.connect(tmp_path / FILENAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    begin = time.monotonic()
    with KnownCounts(tmp_path) as known:
        assert known.find([task()]) == [None]
        known.keep(task("/d/b"), whole())
    assert time.monotonic() - begin < 2
    assert known.warnings == [f"counts are not kept in '{tmp_path / FILENAME}': database is locked"]
    other.close()
    assert found(tmp_path, task(), task("/d/b")) == [5, None]


def test_a_damaged_database_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / FILENAME
    for data in (b"no database" * 99, b"SQLite format 3\0" + bytes(4080)):
        path.write_bytes(data)
        with KnownCounts(tmp_path) as known:
            assert known.find([task()]) == [None]
            known.keep(task(), whole())
        (said,) = known.warnings
        assert said.startswith(f"counts are not kept in '{path}': ")
        assert said.endswith("; it was put aside as counts.damaged")
        assert (tmp_path / "counts.damaged").read_bytes() == data
        kept(tmp_path, task())
        assert found(tmp_path, task()) == [5]


def test_a_database_of_something_else_is_put_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILENAME) as other:
        other.execute("CREATE TABLE files(folder)")
    other.close()
    with KnownCounts(tmp_path) as known:
        assert known.find([task()]) == [None]
    (said,) = known.warnings
    assert "it is not one of shardctl's; it was put aside" in said
    kept(tmp_path, task())


def test_one_of_a_newer_shardctl_is_left_alone(tmp_path: Path) -> None:
    kept(tmp_path, task())
    with sqlite3.connect(tmp_path / FILENAME) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = (tmp_path / FILENAME).read_bytes()
    with KnownCounts(tmp_path) as known:
        assert known.find([task()]) == [None]
        known.keep(task("/d/b"), whole())
    assert known.warnings == [
        f"counts are not kept in '{tmp_path / FILENAME}': a newer shardctl writes it"
    ]
    assert (tmp_path / FILENAME).read_bytes() == before


def test_no_flipped_bit_becomes_a_wrong_count(tmp_path: Path) -> None:
    paths = [f"/d/{number}" for number in range(40)]
    kept(tmp_path, *map(task, paths))
    data = (tmp_path / FILENAME).read_bytes()
    place = data.rindex(OLD.encode())
    wrong = 0
    for at in range(place - 60, min(place + 60, len(data))):
        changed = bytearray(data)
        changed[at] ^= 4
        (tmp_path / FILENAME).write_bytes(changed)
        with KnownCounts(tmp_path) as known:
            answers = known.find(list(map(task, paths)))
        assert {answer.num_records for answer in answers if answer is not None} <= {5}
        wrong += None in answers
    assert wrong > 20


@pytest.mark.parametrize("is_root", [os.geteuid() == 0])
def test_a_read_only_database_is_read(tmp_path: Path, is_root: bool) -> None:
    kept(tmp_path, task())
    path = tmp_path / FILENAME
    path.chmod(stat.S_IRUSR)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with KnownCounts(tmp_path) as known:
            (answer,) = known.find([task()])
            known.keep(task("/d/b"), whole())
    finally:
        tmp_path.chmod(0o700)
    assert answer == FileContents(num_records=5, num_bytes=9)
    said = f"counts are not kept in '{path}': attempt to write a readonly database"
    assert known.warnings == ([] if is_root else [said])


def test_without_a_place_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null/x"), None):
        with KnownCounts(folder) as known:
            assert known.find([task()]) == [None]
            known.keep(task(), whole())
        (said,) = known.warnings
        assert said.isprintable()


def test_a_full_disk_ends_the_keeping(tmp_path: Path) -> None:
    kept(tmp_path, task())
    with KnownCounts(tmp_path) as known:
        assert known._database is not None
        known._database.execute("PRAGMA max_page_count = 6")
        for number in range(3000):
            known.keep(task(f"/d/{number}"), whole())
        known._write()
        assert known.find([task()]) == [whole()]
    assert known.warnings == [
        f"counts are not kept in '{tmp_path / FILENAME}': database or disk is full"
    ]
    assert found(tmp_path, task(), task("/d/7")) == [5, None]


def test_a_database_that_is_too_large_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 100_000)
    for turn in range(10):
        kept(tmp_path, *(task(f"/{turn}/{number}") for number in range(500)))
        assert (tmp_path / FILENAME).stat().st_size < 200_000
        assert found(tmp_path, task(f"/{turn}/7")) in ([5], [None])


def test_a_database_of_an_older_shardctl_is_begun_anew(tmp_path: Path) -> None:
    kept(tmp_path, task())
    with sqlite3.connect(tmp_path / FILENAME) as older:
        older.execute("PRAGMA user_version = 1")
        older.execute("CREATE TABLE folders(id INTEGER)")
    older.close()
    assert found(tmp_path, task()) == [None]
    kept(tmp_path, task())
    assert found(tmp_path, task()) == [5]


@pytest.mark.parametrize(
    ("column", "value"),
    [("num_records", 6), ("compression", "GZIP"), ("checksums", 1), ("path", b"/d/b")],
)
def test_a_row_that_changed_is_not_believed(tmp_path: Path, column: str, value: object) -> None:
    kept(tmp_path, task())
    with sqlite3.connect(tmp_path / FILENAME) as other:
        other.execute(f"UPDATE files SET {column} = ?", (value,))
    other.close()
    assert found(tmp_path, task(), task("/d/b")) == [None, None]
