"""Files are written whole or not at all, whoever writes and is killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from shardctl.errors import UsageError
from shardctl.files.atomic import new_file
from tests.cases import add_cases
from tests.children import start
from tests.golden import assert_evaluated


def write(chunks: Iterable[str], path: str) -> None:
    with new_file(path) as file:
        for chunk in chunks:
            file.write(chunk.encode())


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_permissions_of_any_and_one_written_again_its_own(
    tmp_path: Path,
) -> None:
    path, before = tmp_path / "out", os.umask(0o027)
    try:
        write(["old, and longer than what comes"], str(path))
    finally:
        os.umask(before)
    assert mode_of(path) == 0o640
    path.chmod(0o604)
    write(["new"], str(path))
    assert (path.read_text(), mode_of(path)) == ("new", 0o604)


def test_behind_a_link_the_file_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("folder/real")
    write(["new"], str(link))
    assert link.is_symlink()
    assert entries(tmp_path / "folder") == {"real": b"new"}


@pytest.mark.parametrize("old", [b"old", None])
@pytest.mark.parametrize("error", [UsageError, KeyboardInterrupt, MemoryError, OSError])
def test_what_breaks_off_leaves_everything_as_it_was(
    tmp_path: Path, error: type[BaseException], old: bytes | None
) -> None:
    before = {} if old is None else {"out": old}
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)

    def chunks() -> Iterator[str]:
        yield "x" * 100_000
        raise error("enough")

    with pytest.raises((error, UsageError)):
        write(chunks(), str(tmp_path / "out"))
    assert entries(tmp_path) == before


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_after_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        events.append("folder" if folder else os.pread(handle, 99, 0))
        fsync(handle)

    def replaced(old: str, new: str) -> None:
        events.append("renamed")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write(["all ", "of it"], str(tmp_path / "new"))
    assert events == [b"all of it", "renamed", "folder"]


def test_a_path_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    assert_evaluated(globals(), "not_written")
    assert entries(tmp_path) == {"file": b"old"}
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "loop"]


@pytest.mark.parametrize("length", [255, 256, 5000])
def test_a_name_may_be_as_long_as_the_file_system_lets_it(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("x" * length)
    if length <= 255:
        write(["x"], str(path))
    else:
        with pytest.raises(UsageError, match="File name too long"):
            write(["x"], str(path))
    assert entries(tmp_path) == ({path.name: b"x"} if length <= 255 else {})


def test_a_name_need_not_be_utf_8(tmp_path: Path) -> None:
    write(["x"], os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe"]


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(["a", "b"], str(pipe))
    assert os.read(end, 9) == b"ab"
    os.close(end)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(UsageError, match="No such device or address"):  # nobody reads it any more
        write(["a"], str(pipe))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_killed_program_leaves_no_file(tmp_path: Path, number: int) -> None:
    program = (
        "import sys, time\n"
        "from shardctl.files.atomic import new_file\n"
        "with new_file(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 100_000)\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(30)\n"
    )
    process = start(
        [sys.executable, "-c", program, tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    assert len(os.listdir(tmp_path)) == 1
    process.send_signal(number)
    assert process.wait(timeout=20) != 0
    process.stdout.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ignored", [True, False])
def test_a_signal_that_a_program_handles_itself_stays_its_own(
    tmp_path: Path, ignored: bool
) -> None:
    # A training loop that saves its position on SIGTERM must not be ended by the writing of it.
    caught: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN if ignored else handler)
    try:
        with new_file(str(tmp_path / "out")) as file:
            os.kill(os.getpid(), signal.SIGTERM)
            file.write(b"x")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert entries(tmp_path) == {"out": b"x"}
    assert caught == ([] if ignored else [signal.SIGTERM])


def test_what_stdout_holds_is_written_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = (
        "from shardctl.files.atomic import new_file\n"
        "with new_file('/dev/stdout') as file: file.write(b'x')"
    )
    with log.open("a") as end:
        subprocess.run([sys.executable, "-c", program], stdout=end, check=True)
    assert log.read_text() == "before\nx"


# Temporary files.

# Forked children write without end and are killed; argv: the target, how, the seed, the kills.
KILLED_WRITERS = Path(__file__).with_name("killed_writers.txt").read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("how", ["position", "output"])
def test_killed_writers_leave_the_target_whole(tmp_path: Path, how: str) -> None:
    # What remains is checked by the child; that kills hit the writing, by the files they leave.
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WRITERS, tmp_path / "target", how, "1", "30"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    add_cases(30)
    assert int(done.stdout) > 0


def test_the_file_of_a_process_that_lives_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with new_file(str(target)) as file:
        file.write(b"first to begin")
        subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys\nfrom shardctl.files.atomic import new_file\n"
                "with new_file(sys.argv[1]) as file: file.write(b'first to end')",
                target,
            ],
            check=True,
        )
        assert target.read_bytes() == b"first to end"
    assert target.read_bytes() == b"first to begin"
    assert os.listdir(tmp_path) == ["out"]


def test_many_writers_of_one_target_all_end_well(tmp_path: Path) -> None:
    target = tmp_path / "out"
    failures: list[BaseException] = []
    gate = threading.Barrier(24)

    def write_often(text: str) -> None:
        try:
            gate.wait()
            for _ in range(5):
                write([text * 5000], str(target))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write_often, args=(chr(65 + n),)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(target.read_text()) == 5000
    assert len(set(target.read_text())) == 1
    assert os.listdir(tmp_path) == ["out"]
