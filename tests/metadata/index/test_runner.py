"""The one way in which every runner counts a file."""

from __future__ import annotations

import os
from pathlib import Path

from shardctl.metadata.index.workers import FileToCount, LocalRunner, Runner, count_one
from shardctl.stores.store import StoredFile
from tests.record_files import framed


def test_a_file_is_counted_as_it_was_listed_or_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(framed(b"x", b"y"))
    other = StoredFile(path=str(path), num_bytes=1, version="mtime:1")
    task = FileToCount(index=4, file=other, file_format="tfrecord")
    (kind,) = {count_one(task).contents.damage.kind}  # type: ignore[union-attr]
    assert kind == "unreadable"
    now = FileToCount(index=4, file=other, file_format="tfrecord", listed=False)
    assert (count_one(now).index, count_one(now).contents.num_records) == (4, 2)
    os.unlink(path)
    assert count_one(now).contents.damage.kind == "missing"  # type: ignore[union-attr]


def test_what_counts_is_a_runner() -> None:
    assert isinstance(LocalRunner(), Runner)
    assert not isinstance(3, Runner)
