"""Hashes that MosaicML wrote are those of the files; others are named."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import LocalStore
from shardctl.readers.records.sidecars import (
    hash_difference,
    hash_differences,
    unknown_hashes,
)
from tests.byte_sources import RECORDED


def stored(path: Path) -> StoredFile:
    found = LocalStore().status(str(path))
    assert found is not None
    return found


def test_recorded_hashes_are_those_of_the_files() -> None:
    folder = RECORDED / "mds_zstd"
    index = json.loads((folder / "index.json").read_text())
    files = [
        (
            stored(folder / shard["zip_data"]["basename"]),
            tuple(shard["zip_data"]["hashes"].items()),
        )
        for shard in index["shards"]
    ]
    assert [said for _, said in hash_differences(files)] == [None, None, None]


def test_another_hash_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    file, sha1 = stored(tmp_path / "a"), hashlib.sha1(b"abc").hexdigest()
    told: list[int] = []
    assert hash_difference(file, [("sha1", sha1)], told=told.append) is None
    assert told == [3]
    assert hash_difference(file, [("sha1", "0" * 40)]) == f"has sha1 {sha1}, not '{'0' * 40}'"
    assert hash_difference(file, [("crc0", "1")]) is None  # nothing to compare with


def test_a_file_that_changed_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    file = stored(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"abcd")
    with pytest.raises(DatasetError, match="changed"):
        hash_difference(file, [("sha1", "0")])
    ((found, text),) = hash_differences([(file, (("sha1", "0"),))])
    assert found == file
    assert str(text).startswith("cannot be read: ")


def test_unknown_algorithms_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unknown_hashes(["md5", "sha256", "shake_128", "md5", "nohash"]) == [
        "nohash",
        "shake_128",
    ]
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "xxhash", hidden)
    assert unknown_hashes(["xxh64"]) == ["xxh64"]


def test_an_end_of_the_asking_ends_the_reading(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number)).write_bytes(b"x")
    asked = ((stored(tmp_path / str(number)), (("sha1", "0"),)) for number in range(40))
    answers = hash_differences(asked)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(
        thread.name.startswith("shardctl") for thread in threading.enumerate()
    ):
        time.sleep(0.01)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("shardctl")]
