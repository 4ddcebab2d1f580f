"""Files counted one by one: which are asked for, and in which order."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest

from shardctl.metadata.index.count import Counts, count_files, known_counts
from shardctl.metadata.index.workers import CountedFile, FileToCount
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile

LONG_AGO = 1_600_000_000_000_000_001


class Counting:
    """Takes the index of a file for what it holds; `broken` ones are cut off."""

    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        self.config: list[int] = []
        self._broken = broken

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        for task in files:
            self.config.append(task.index)
            damage = Damage(kind="cut", text="cut") if task.index in self._broken else None
            contents = FileContents(num_records=task.index, compression="GZIP", damage=damage)
            yield CountedFile(index=task.index, contents=contents)


def count(runner: Counting, versions: list[str], *, keep_going: bool = False) -> Counts:
    files = [
        StoredFile(path=f"/d/{number}", num_bytes=1, version=version)
        for number, version in enumerate(versions)
    ]
    with known_counts(cache=False, earlier=None) as known:
        return count_files(files, "tfrecord", known, runner=runner, keep_going=keep_going)


def test_each_file_is_asked_for_once() -> None:
    runner = Counting()
    found = count(runner, [f"mtime:{LONG_AGO}"] * 10_000)
    held = [one for one in found.contents if one is not None]
    assert [one.num_records for one in held] == runner.config == list(range(10_000))
    assert {one.compression for one in held} == {"GZIP"}
    assert (found.num_counted, found.num_known, found.broken) == (10_000, 0, {})


@pytest.mark.long
def test_behind_a_broken_file_none_is_asked_for() -> None:
    runner = Counting(broken=(5000,))
    found = count(runner, [""] * 10_000)
    assert runner.config == list(range(5001))
    assert list(found.broken) == [5000]
    assert found.contents[5000] is None
    going = Counting(broken=(5000, 7000))
    assert list(count(going, [""] * 10_000, keep_going=True).broken) == [5000, 7000]
    assert len(going.config) == 10_000


def test_files_that_changed_just_now_are_counted_last_and_later() -> None:
    now = time.time_ns() | 1
    runner = Counting()
    found = count(runner, [f"mtime:{now}", f"mtime:{LONG_AGO}", "etag:x", f"mtime:{now - 1}"])
    assert runner.config == [1, 2, 0, 3]
    assert time.time_ns() >= now + 25_000_000
    assert found.unsettled == set()


@pytest.mark.parametrize(
    "version", ["mtime:x", "mtime:", "modified:yesterday", "generation:1", "modified:\udcff"]
)
def test_other_versions_go_by_no_clock(version: str) -> None:
    begin = time.monotonic()
    assert count(Counting(), [version]).unsettled == set()
    assert time.monotonic() - begin < 0.5


@pytest.mark.parametrize("kind", ["mtime", "created", "last_modified"])
def test_times_of_fsspec_are_seconds(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time_ns", lambda: 1_445_412_480_500_000_000)
    assert count(Counting(), [f"{kind}:1445412480.0"]).unsettled == {0}
    assert slept == [pytest.approx(1.6)]
    assert count(Counting(), [f"{kind}:1445412480.25"]).unsettled == set()
    assert slept[1:] == []


def test_web_servers_tell_whole_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time_ns", lambda: 1_445_412_480_500_000_000)
    found = count(Counting(), ["modified:Wed, 21 Oct 2015 07:28:00 GMT"])  # half a second ago
    assert slept == [pytest.approx(1.6)]
    assert found.unsettled == {0}  # since the clock of the test stands still
