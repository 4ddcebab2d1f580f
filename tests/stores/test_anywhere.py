"""What lies at a path is asked the same way of a disk and of any other place."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, NotThereError
from shardctl.stores.paths import AnyPath, RemotePath, name_of
from shardctl.stores.stores import answers, files_in, is_file, is_folder, read_file, subfolders
from tests.remote_copies import in_memory


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> AnyPath:
    """A folder with a file and two folders, on a disk and elsewhere."""
    folder = tmp_path / "root"
    for name in ("a.json", "b/c.json", "b.2/c.json", ".hidden/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder if request.param == "disk" else RemotePath(in_memory(folder))


def test_files_and_folders_are_told_apart(root: AnyPath) -> None:
    assert [is_file(root / name) for name in ("a.json", "b", "no")] == [True, False, False]
    assert [is_folder(root / name) for name in ("a.json", "b", "no")] == [False, True, False]
    assert subfolders(root) == ["b", "b.2"]
    assert [(name_of(file.path), file.num_bytes) for file in files_in(root)] == [("a.json", 6)]


def test_a_file_is_read_whole_within_a_bound(root: AnyPath) -> None:
    assert read_file(root / "b" / "c.json") == b"b/c.json"
    assert read_file(root / "a.json", max_num_bytes=6) == b"a.json"
    with pytest.raises(DatasetError, match="larger than 5 bytes"):
        read_file(root / "a.json", max_num_bytes=5)


def test_what_is_not_there_is_told_from_other_trouble(root: AnyPath) -> None:
    with pytest.raises(NotThereError, match="no such file"):
        read_file(root / "no")
    with pytest.raises(NotThereError, match="no such folder"):
        list(files_in(root / "no"))


def test_what_stands_for_a_secret_is_asked_for_with_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"c")
    folder = RemotePath(in_memory(tmp_path / "a", user="me:pw@"))
    assert "pw" not in str(folder)
    assert read_file(folder / "b") == b"c"
    assert [name_of(file.path) for file in files_in(folder)] == ["b"]


def test_answers_come_in_order_and_remote_places_are_asked_at_once() -> None:
    together = threading.Barrier(4, timeout=10)

    def ask(number: int) -> int:
        if number < 4:
            together.wait()  # passes where four are asked at once
        time.sleep(0.01 * (8 - number))
        return number

    assert list(answers(ask, range(8), at_once=True)) == list(range(8))
    assert list(answers(str, range(3), at_once=False)) == ["0", "1", "2"]


def test_an_answer_that_fails_ends_the_asking() -> None:
    def ask(number: int) -> int:
        raise DatasetError(f"no {number}")

    with pytest.raises(DatasetError, match="no 0"):
        list(answers(ask, range(100), at_once=True))
