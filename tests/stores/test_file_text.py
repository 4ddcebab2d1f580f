"""Text files and folders: read whole and in bounds, or refused in a line that says why."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, NotThereError
from shardctl.files.parse import decode
from shardctl.stores.paths import absolute, working_folder
from shardctl.stores.stores import os_reason, read_file, subfolders
from tests.strategies import error_line

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes, links and permissions")


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\0four")
    assert read_file(path) == b"\xff\0four"
    assert read_file(path, max_num_bytes=6) == b"\xff\0four"
    line = error_line(lambda: read_file(path, max_num_bytes=5))
    assert line == f"'{path}' is larger than 5 bytes, the most read as text"


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs a file without a size")
def test_a_file_without_a_size_is_read_up_to_the_bound() -> None:
    path = Path("/proc/version")
    data = path.read_bytes()
    assert path.stat().st_size == 0 < len(data)
    assert read_file(path, max_num_bytes=len(data)) == data
    with pytest.raises(DatasetError, match=f"larger than {len(data) - 1} bytes"):
        read_file(path, max_num_bytes=len(data) - 1)


def test_what_is_not_there_is_told_from_what_cannot_be_read(tmp_path: Path) -> None:
    for name, kind in (("gone", NotThereError), ("x" * 999, DatasetError)):
        with pytest.raises(DatasetError) as caught:
            read_file(tmp_path / name)
        assert type(caught.value) is kind


def test_an_error_of_a_library_without_a_number_has_a_reason() -> None:
    assert os_reason(OSError("a text of its own")) == "it cannot be opened"


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert error_line(lambda: read_file(gone)) == f"cannot read '{gone}': no such file"
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


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", ""), ("é".encode(), "é"), (b"\xef\xbb\xbfa", "a"), (b"a\r\nb", "a\r\nb")],
)
def test_utf_8_is_text_without_the_mark_that_editors_put_in_front(data: bytes, text: str) -> None:
    assert decode(data, source="x") == text


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xff", "line 1 "),
        (b"a\nb\n\xe9", "line 3 "),
        ("a".encode("utf-16"), "line 1 "),
        (b"a\n\0", "line 2 holds a NUL character"),
    ],
)
def test_what_is_not_text_is_refused_with_its_line(data: bytes, line: str) -> None:
    said = error_line(lambda: decode(data, source="notes.txt"))
    assert said is not None
    assert said.startswith(f"notes.txt: {line}")


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert len(read_file(tmp_path / "file")) == 1000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


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
