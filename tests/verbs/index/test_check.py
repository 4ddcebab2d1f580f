"""What became of the files of a layout: all that changed is named, and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.files.documents import to_yaml
from shardctl.metadata.index.index import index, index_document
from shardctl.verbs.index.check import IndexCheck, check_index
from tests.record_files import framed


def write(path: Path, *records: bytes, seconds: int = 1000) -> Path:
    path.write_bytes(framed(*records))
    ago = time.time_ns() - seconds * 10**9 + 7
    os.utime(path, ns=(ago, ago))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for shard in range(6):
        write(tmp_path / "data" / f"part-{shard:05}.tfrecord", *[b"abcdef"] * (shard + 1))
    return tmp_path / "data"


@pytest.fixture
def layout(data: Path) -> Path:
    return indexed(data)


def indexed(data: Path, *paths: str, **options: Any) -> Path:
    found = index(*(paths or (data,)), **options)
    layout = data.parent / "layout.yaml"
    layout.write_text("".join(to_yaml(index_document(found, str(data.parent)))))
    return layout


def changes(check: IndexCheck) -> list[tuple[str, str, int | None, int | None]]:
    assert check.equal == (not check.changes)
    return [(one.kind, one.path, one.then, one.now) for one in check.changes]


def test_each_change_is_named(data: Path, layout: Path) -> None:
    write(data / "part-00000.tfrecord", b"abcdef", b"more")
    (data / "part-00001.tfrecord").unlink()
    write(data / "part-00002.tfrecord", b"less")
    # As many bytes as three records of six: 3 * (16 + 6) = 2 * (16 + 17).
    size = (data / "part-00003.tfrecord").stat().st_size
    write(data / "part-00003.tfrecord", b"x" * (size - 16), seconds=900)
    write(data / "part-00004.tfrecord", *[b"ABCDEF"] * 5, seconds=900)
    broken = write(data / "part-00005.tfrecord", *[b"abcdef"] * 6, seconds=900)
    broken.write_bytes(broken.read_bytes()[:-3])
    write(data / "part-00006.tfrecord", b"new")
    check = check_index(layout)
    assert changes(check) == [
        ("grew", "part-00000.tfrecord", 1, 2),
        ("vanished", "part-00001.tfrecord", 2, None),
        ("shrank", "part-00002.tfrecord", 3, 1),
        ("rewritten", "part-00003.tfrecord", 4, 1),
        ("shrank", "part-00005.tfrecord", 6, None),
        ("appeared", "part-00006.tfrecord", None, None),
    ]
    assert [one.bytes_now for one in check.changes][:2] == [2 * 16 + 10, None]
    assert "cut off: " in str(check.changes[4].reason)


def test_files_that_were_broken_are_compared_too(data: Path) -> None:
    file = data / "part-00005.tfrecord"
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    layout = indexed(data, keep_going=True)
    assert (check_index(layout).equal, check_index(layout).num_files) == (True, 5)
    file.write_bytes(whole)
    assert changes(check_index(layout)) == [("grew", file.name, None, 6)]


def test_files_of_other_patterns_did_not_appear(data: Path) -> None:
    write(data / "other-00000.tfrecord", b"x")
    layout = indexed(data, f"{data}/part-*")
    assert check_index(layout).equal
    write(data / "part-00006.tfrecord", b"x")
    assert changes(check_index(layout)) == [("appeared", "part-00006.tfrecord", None, None)]


@pytest.mark.parametrize("absolute", [False, True])
def test_files_of_no_split_did_not_appear(data: Path, absolute: bool) -> None:
    write(data / "other-00000.tfrecord", b"x")
    glob = f"{data}/part-*" if absolute else "part-*"
    layout = indexed(data, split={"train": glob, "test": "other-*[0-3].tfrecord"})
    write(data / "other-00004.tfrecord", b"x")
    assert check_index(layout).equal
    for name in ("part-00006.tfrecord", "other-00001.tfrecord"):
        write(data / name, b"x")
    moved = data.parent.parent / f"moved-{absolute}"
    shutil.move(data.parent, moved)
    found = {path for _, path, *_ in changes(check_index(moved / "layout.yaml"))}
    assert found == {"part-00006.tfrecord", "other-00001.tfrecord"}


def test_a_layout_moves_with_files_in_a_folder_below_the_one_that_was_given(data: Path) -> None:
    indexed(data, str(data.parent), f"{data.parent}/*/part-*")
    moved = data.parent.parent / "moved"
    shutil.move(data.parent, moved)
    layout = moved / "layout.yaml"
    assert check_index(layout).equal
    (moved / "data2").mkdir()
    write(moved / "data2" / "part-00006.tfrecord", b"x")
    assert changes(check_index(layout)) == [
        ("appeared", str(moved / "data2" / "part-00006.tfrecord"), None, None)
    ]


def test_a_folder_without_any_file_is_one_from_which_all_vanished(data: Path, layout: Path) -> None:
    for file in data.iterdir():
        file.unlink()
    assert {kind for kind, *_ in changes(check_index(layout))} == {"vanished"}
    data.rmdir()
    with pytest.raises(DatasetError):
        check_index(layout)


def test_a_place_that_cannot_be_listed_is_not_one_from_which_all_vanished(
    data: Path, layout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(DatasetError, match="permission denied"):
        check_index(layout)


def test_a_path_that_is_given_and_is_not_there_is_an_error(data: Path, layout: Path) -> None:
    with pytest.raises(DatasetError, match="no file matches"):
        check_index(layout, data.parent / "dat")


def test_what_is_gone_of_many_paths_takes_no_other_file_along(data: Path) -> None:
    names = [str(data / f"part-{shard:05}.tfrecord") for shard in range(6)]
    braces = f"{data}/part-0000{{4..5}}.tfrecord"
    layout = indexed(data, *names[:4], braces, f"{data}/part-00005*")
    (data / "part-00001.tfrecord").unlink()
    (data / "part-00005.tfrecord").unlink()
    assert changes(check_index(layout)) == [
        ("vanished", "part-00001.tfrecord", 2, None),
        ("vanished", "part-00005.tfrecord", 6, None),
    ]


def test_contents_are_read_where_they_are_asked_for(data: Path, layout: Path) -> None:
    assert check_index(layout, checksums=True).equal
    file = data / "part-00004.tfrecord"
    status = file.stat()
    damaged = bytearray(file.read_bytes())
    damaged[14] ^= 1
    file.write_bytes(damaged)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # as rot of a disk leaves it
    assert check_index(layout).equal
    assert changes(check_index(layout, checksums=True)) == [
        ("broken", "part-00004.tfrecord", 5, None)
    ]


def test_a_file_of_another_digest_was_rewritten(data: Path) -> None:
    layout = indexed(data, digest=True, cache=False)
    file = min(data.glob("part-*"))
    file.write_bytes(file.read_bytes())
    assert check_index(layout).equal
    spoiled = bytearray(file.read_bytes())
    spoiled[-1] ^= 1  # of the checksum of the last record, which counting jumps over
    file.write_bytes(spoiled)
    assert [(one.kind, one.path) for one in check_index(layout).changes] == [
        ("rewritten", file.name)
    ]


def test_other_files_are_no_layouts_of_index(data: Path) -> None:
    other = data.parent / "other.yaml"
    other.write_text("splits: {train: {shard_lengths: [1]}}\n")
    with pytest.raises(DatasetError, match=r"other.yaml: it is not a layout that shardctl index"):
        check_index(other)
