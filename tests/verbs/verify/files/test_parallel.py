"""Many files at once: each answered, few in memory, ended at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.metadata.index import workers as local_runner
from shardctl.records import read_file
from shardctl.records.contents import FileContents
from shardctl.verbs.verify.verify_files import Place, read_record_files
from tests.record_files import framed, header


def files(folder: Path, count: int) -> dict[Place, tuple[str, int]]:
    return {(0, shard): (str(folder / str(shard)), 17 * shard) for shard in range(count)}


def test_every_file_is_answered_once(tmp_path: Path) -> None:
    for shard in range(50):
        (tmp_path / str(shard)).write_bytes(framed(*[b"x"] * shard))
    told: list[tuple[str, int, int]] = []
    found = dict(
        read_record_files(
            files(tmp_path, 51), "tfrecord", watch=lambda *report: told.append(report)
        )
    )
    assert {place[1]: contents.num_records for place, contents in found.items()} == {
        **{shard: shard for shard in range(50)},
        50: None,
    }
    num_bytes = sum(17 * shard for shard in range(51))
    assert told[-1] == ("bytes", num_bytes, num_bytes)
    done = [count for _, count, _ in told]
    assert done == sorted(done)


@pytest.mark.parametrize("alone", [-1, 100])
def test_an_end_stops_the_reading_at_the_next_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: float
) -> None:
    length = 1 << 40
    for shard in range(9):
        with (tmp_path / str(shard)).open("wb") as file:
            file.write(header(length))
            file.truncate(length + 16)  # takes no room on the disk, and minutes to read

    def interrupted(*report: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_runner, "_ALONE", alone)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(read_record_files(files(tmp_path, 9), "tfrecord", watch=interrupted))
    assert time.monotonic() - start < 5
    assert not [t for t in threading.enumerate() if "receive" in t.name]


def test_what_one_file_raises_ends_all(tmp_path: Path, monkeypatch: Any) -> None:
    def missing(*arguments: object, **options: object) -> FileContents:
        raise MissingDependencyError("a package")

    monkeypatch.setattr(read_file, "read_record_file", missing)
    with pytest.raises(MissingDependencyError, match="a package"):
        list(read_record_files(files(tmp_path, 99), "parquet"))
