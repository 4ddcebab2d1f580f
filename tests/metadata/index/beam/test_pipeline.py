"""Files and counts go through a pipeline as text, whatever their names."""

from __future__ import annotations

import json

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata.index.beam_runner import (
    counted_line,
    counted_of_line,
    task_line,
    task_of_line,
)
from shardctl.metadata.index.workers import CountedFile, FileToCount
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile

_NAMES = ("a", "a b\n\r\t", "ünï", "\udcff\udc80", "gs://b/a?x#y", '"\\', "\u2028")


@pytest.mark.parametrize("name", _NAMES)
def test_files_and_counts_are_lines_of_ascii(name: str) -> None:
    file = StoredFile(path=name, num_bytes=2**40, version=name)
    task = FileToCount(index=7, file=file, file_format="tfrecord", checksums=True)
    line = task_line(task)
    assert line.isascii()
    assert "\n" not in line
    assert task_of_line(line) == task
    damage = Damage(kind="data", text=name, record=3, byte=2**40)
    for contents in (
        FileContents(num_records=None, damage=damage, checked="checksums"),
        FileContents(num_records=2**40, num_bytes=5, num_bytes_read=4, compression="GZIP"),
    ):
        counted = CountedFile(index=7, contents=contents)
        assert counted_line(counted).isascii()
        assert counted_of_line(counted_line(counted)) == counted


@pytest.mark.parametrize("line", ["", "{}", "[1]", '[1, {"num_records": 3}]', '[1, {"new": 3}]'])
def test_answers_of_another_version_are_refused(line: str) -> None:
    with pytest.raises(DatasetError, match="needs shardctl of this version"):
        counted_of_line(line)


def test_what_a_worker_lacks_is_a_text() -> None:
    assert counted_of_line(json.dumps([3, "no pyarrow"])) == "no pyarrow"
