"""Files and folders of this machine: read whole and in bounds, or refused in a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, NotThereError
from shardctl.stores.stores import LocalStore, absolute, read_file, subfolders, working_folder
from tests.strategies import error_line

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes, links and permissions")


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\0four")
    assert read_file(path) == b"\xff\0four"
    assert read_file(path, max_num_bytes=6) == b"\xff\0four"
    line = error_line(lambda: read_file(path, max_num_bytes=5))
    assert line == f"'{path}' is larger than 5 bytes, the most read as text"


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert error_line(lambda: read_file(gone)) == f"cannot read '{gone}': no such file"
    for ask in (read_file, subfolders):
        with pytest.raises(NotThereError):
            ask(gone)
    assert "is a folder; a file is needed" in str(error_line(lambda: read_file(tmp_path)))
    assert "no path holds a NUL character" in str(error_line(lambda: read_file(Path("a\0b"))))
    assert "name too long" in str(error_line(lambda: read_file(tmp_path / ("x" * 999))))


@posix
def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        line = error_line(lambda path=path: read_file(path))  # type: ignore[misc]
        assert line == f"'{path}' is a pipe, a socket or a device; it must be a file"


@posix
def test_folders_in_a_folder_are_listed_in_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden", "10", "9"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    assert subfolders(tmp_path) == ["10", "9", "a", "b", "link"]
    assert subfolders(tmp_path / "a") == []


def test_a_folder_that_cannot_be_listed_says_why(tmp_path: Path) -> None:
    gone, file = tmp_path / "gone", tmp_path / "file"
    file.touch()
    assert error_line(lambda: subfolders(gone)) == f"cannot read '{gone}': no such folder"
    assert error_line(lambda: subfolders(file)) == f"cannot read '{file}': not a directory"
    assert "no path holds a NUL" in str(error_line(lambda: subfolders(Path("a\0b"))))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_file_that_says_it_has_no_bytes_is_read_to_its_end() -> None:
    path = Path("/proc/self/status")
    assert os.stat(path).st_size == 0
    assert b"VmPeak" in read_file(path)
    assert "larger than 9 bytes" in str(error_line(lambda: read_file(path, max_num_bytes=9)))


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)
    assert "is larger than 1073741824 bytes" in str(
        error_line(lambda: read_file(tmp_path / "file"))
    )


@posix
def test_a_working_folder_that_is_gone_leaves_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (working_folder(), absolute("a")) == (tmp_path, str(tmp_path / "a"))
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert working_folder() / tmp_path == tmp_path
    assert absolute(tmp_path) == str(tmp_path)
    assert "'a': the working folder is gone" in str(error_line(lambda: absolute("a")))


@pytest.mark.parametrize("moment", ["listed", "opened"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: os.utime(path, ns=(1, 2)), "changed while it was read"),
        (lambda path: path.write_bytes(b"another 10"), "changed while it was read"),
        (lambda path: os.replace(path.with_name("b"), path), "changed while it was read"),
        (Path.unlink, "no such file|vanished while it was read"),
    ],
)
def test_a_file_that_changes_after_it_was_listed_is_refused(
    tmp_path: Path, change: Callable[[Path], object], said: str, moment: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    os.utime(path, ns=(1, 1))
    (listed,) = LocalStore().scan(str(tmp_path))
    path.with_name("b").write_bytes(b"another 10")

    def read() -> None:
        if moment == "listed":
            change(path)
        with LocalStore().open(listed) as source:
            assert moment == "opened"
            assert source.read(0, 5) == b"01234"
            change(path)

    with pytest.raises(DatasetError, match=said):
        read()


def test_a_fifo_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    assert LocalStore().status(str(tmp_path / "a")) is None
    assert list(LocalStore().scan(str(tmp_path))) == []
