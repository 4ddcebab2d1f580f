"""Which files are counted and when, and counts of earlier runs, which are never in the way."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from shardctl.metadata.index import count as module
from shardctl.metadata.index.count import CountCache, Counts, cache_folder, count_files
from shardctl.metadata.index.workers import CountedFile, FileToCount
from shardctl.records.contents import Compression, Damage, FileContents
from shardctl.stores.store import StoredFile

LONG_AGO = 1_600_000_000_000_000_001
OLD = "mtime:1700000000000000001"


class Counting:
    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        self.asked: list[int] = []
        self._broken = broken

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        for task in files:
            self.asked.append(task.index)
            damage = Damage(kind="cut", text="cut") if task.index in self._broken else None
            contents = FileContents(num_records=task.index, compression="GZIP", damage=damage)
            yield CountedFile(index=task.index, contents=contents)


def count(runner: Counting, versions: list[str], *, keep_going: bool = False) -> Counts:
    files = [
        StoredFile(path=f"/d/{number}", num_bytes=1, version=version)
        for number, version in enumerate(versions)
    ]
    return count_files(files, "tfrecord", runner=runner, keep_going=keep_going)


@pytest.mark.long
def test_behind_a_broken_file_none_is_asked_for() -> None:
    runner = Counting(broken=(5000,))
    found = count(runner, [""] * 10_000)
    assert runner.asked == list(range(5001))
    assert list(found.broken) == [5000]
    assert found.contents[5000] is None
    going = Counting(broken=(5000, 7000))
    assert list(count(going, [""] * 10_000, keep_going=True).broken) == [5000, 7000]
    assert len(going.asked) == 10_000


def test_files_that_changed_just_now_are_counted_later() -> None:
    now = time.time_ns() | 1
    runner = Counting()
    found = count(runner, [f"mtime:{now}", f"mtime:{LONG_AGO}", "etag:x", f"mtime:{now - 1}"])
    assert runner.asked == [0, 1, 2, 3]
    assert time.time_ns() >= now + 25_000_000
    assert found.unsettled == set()


@pytest.mark.parametrize(
    "version", ["mtime:x", "mtime:", "modified:yesterday", "generation:1", "modified:\udcff"]
)
def test_other_versions_go_by_no_clock(version: str) -> None:
    begin = time.monotonic()
    assert count(Counting(), [version]).unsettled == set()
    assert time.monotonic() - begin < 0.5


@pytest.mark.parametrize(
    ("version", "waits"),
    [
        ("mtime:1445412480.0", True),
        ("created:1445412480.0", True),
        ("last_modified:1445412480.0", True),
        ("mtime:1445412480.25", False),
        ("modified:Wed, 21 Oct 2015 07:28:00 GMT", True),  # half a second ago, in whole seconds
    ],
)
def test_files_wait_until_their_clock_tells(
    version: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time_ns", lambda: 1_445_412_480_500_000_000)
    # The clock of the test stands still, so that the file stays unsettled.
    assert count(Counting(), [version]).unsettled == ({0} if waits else set())
    assert slept == ([pytest.approx(1.6)] if waits else [])
    far_ahead = ["mtime:1445419999.0"]
    assert count(Counting(), far_ahead).unsettled == {0}
    assert len(slept) == waits


def task(
    path: str = "/d/a", *, num_bytes: int = 9, version: str = OLD, **kind: object
) -> FileToCount:
    file = StoredFile(path=path, num_bytes=num_bytes, version=version)
    return FileToCount(index=0, file=file, **{"file_format": "tfrecord", **kind})  # type: ignore[arg-type]


def kept(
    folder: Path | None,
    *tasks: FileToCount,
    num_records: int = 5,
    compression: Compression | None = None,
) -> CountCache:
    known = CountCache(folder)
    for one in tasks:
        known.keep(one, FileContents(num_records=num_records, compression=compression))
    known.write()
    return known


def found(folder: Path, *tasks: FileToCount) -> list[int | None]:
    known = CountCache(folder)
    answers = [known.find(one) for one in tasks]
    assert known.failed is None
    return [None if answer is None else answer.num_records for answer in answers]


def test_a_count_is_known_of_the_same_file_alone(tmp_path: Path) -> None:
    assert kept(tmp_path, task(), task("/d/b"), num_records=7).failed is None
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


def test_no_flipped_bit_becomes_a_wrong_count(tmp_path: Path) -> None:
    paths = [f"/d/{number}" for number in range(8)]
    kept(tmp_path, *map(task, paths))
    (path,) = (tmp_path / "counts").iterdir()
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 4
        path.write_bytes(changed)
        assert found(tmp_path, *map(task, paths)) == [None] * 8
    for cut in (b"", data[:8], data[:50], data[:-1], b"\0" * 90):
        path.write_bytes(cut)
        assert found(tmp_path, task("/d/1")) == [None]
    kept(tmp_path, task("/d/1"))
    assert found(tmp_path, task("/d/1")) == [5]


def test_what_is_sealed_and_of_another_form_is_not_believed(tmp_path: Path) -> None:
    kept(tmp_path, task())
    (path,) = (tmp_path / "counts").iterdir()
    odd: list[list[object]] = [["5", 5], [False, True], [False, -1], [False, 2**63]]
    others: tuple[object, ...] = (
        *({"a": ["tfrecord", checked, 9, OLD, records, None, None]} for checked, records in odd),
        {"a": ["tfrecord", False, 9, OLD, 5, {}, None]},
        [],
        {"a": 5},
        {"a": []},
        {"a": ["tfrecord", 0, 9, OLD, "5", None, None]},
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
    assert bool(known.failed) != is_root


def test_without_a_place_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null/x")):
        failed = kept(folder, task()).failed or ""
        assert failed.startswith("counts are not kept in ")
        assert failed.isprintable()
    nowhere = kept(None, task())
    assert (nowhere.failed, nowhere.find(task())) == (None, None)


def test_few_folders_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FOLDERS", 3)
    for number in range(9):
        kept(tmp_path, task(f"/{number}/a"))
    assert len(list((tmp_path / "counts").iterdir())) == 3
    assert found(tmp_path, task("/8/a"), task("/0/a")) == [5, None]


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"SHARDCTL_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/shardctl"),
        ({}, "/home/me/.cache/shardctl"),
    ],
)
def test_the_environment_says_where_it_is(
    env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder(env) == Path(folder)
