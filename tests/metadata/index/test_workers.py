"""Files counted by processes: the same answers as by one, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata.index import workers as local_runner
from shardctl.metadata.index.workers import CountedFile, FileToCount, LocalRunner, count_one
from shardctl.records.contents import FileContents
from shardctl.stores.stores import store_of
from tests.cases import some
from tests.children import start
from tests.record_files import framed, header

LONG = 1 << 40  # bytes of a record of zeros, which takes minutes to check


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(local_runner, "_ALONE", -1)
    return started


def tasks(folder: Path, *, checksums: bool = False) -> Iterator[FileToCount]:
    for index, path in enumerate(sorted(folder.iterdir())):
        file = some(store_of(str(path)).status(str(path)))
        yield FileToCount(index=index, file=file, file_format="tfrecord", checksums=checksums)


def contents(counted: Iterator[CountedFile]) -> dict[int, FileContents]:
    return {one.index: one.contents for one in counted}


def endless(folder: Path, count: int = 3) -> None:
    for index in range(count):
        with (folder / str(index)).open("wb") as file:
            file.write(header(LONG))
            file.truncate(LONG + 16)


def test_remote_files_are_counted_at_the_same_time_by_threads(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(3):
        (tmp_path / str(index)).write_bytes(framed(*[b"x"] * index))
    together = threading.Barrier(3)

    def count(*task: Any, **report: Any) -> CountedFile:
        together.wait(20)
        return count_one(*task, **report)

    monkeypatch.setattr(local_runner, "count_one", count)
    monkeypatch.setattr(local_runner, "is_remote", lambda path: True)
    found = contents(LocalRunner(jobs=1).count(tasks(tmp_path)))
    assert {index: one.num_records for index, one in found.items()} == {0: 0, 1: 1, 2: 2}
    assert processes == []


@pytest.mark.long
def test_the_answers_are_the_same_whatever_jobs(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    for index in range(700):
        data = framed(*[b"x"] * (index % 7))
        (tmp_path / f"{index:03}").write_bytes(data[:-1] if index % 100 == 50 else data)
    read = 0

    def report(count: int) -> None:
        nonlocal read
        read += count

    found = contents(LocalRunner(jobs=3, report=report).count(tasks(tmp_path)))
    assert len(processes) == 3
    assert all(process.poll() is not None for process in processes)
    # By hand: a cut file has a record less, and no file is left out.
    assert {index: one.num_records for index, one in found.items()} == {
        index: index % 7 - (index % 100 == 50 and index % 7 > 0) for index in range(700)
    }
    by_processes, read = read, 0
    assert found == contents(LocalRunner(jobs=1, report=report).count(tasks(tmp_path)))
    assert read == by_processes > 0
    assert len(processes) == 3


@pytest.mark.long
def test_a_process_that_is_killed_is_an_error_that_names_its_file(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    endless(tmp_path)

    def kill(count: int) -> None:
        if count:
            processes[1].kill()

    with pytest.raises(DatasetError, match=r"counted '.*/1' was ended by SIGKILL; fewer --jobs"):
        contents(LocalRunner(jobs=2, report=kill).count(tasks(tmp_path, checksums=True)))
    assert all(process.poll() is not None for process in processes)


@pytest.mark.long
def test_an_interrupt_ends_all_at_once(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    endless(tmp_path)

    def interrupted(count: int) -> None:
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        contents(LocalRunner(jobs=2, report=interrupted).count(tasks(tmp_path, checksums=True)))
    assert time.monotonic() - begin < 5
    assert [process.poll() for process in processes] == [-signal.SIGKILL] * 2


def test_what_one_file_raises_is_raised(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    for index in range(3):
        (tmp_path / str(index)).touch()
    of_none = (
        FileToCount(index=task.index, file=task.file, file_format="zip") for task in tasks(tmp_path)
    )
    with pytest.raises(ValueError, match="no way to read zip"):
        contents(LocalRunner(jobs=2).count(of_none))
    assert processes


SCRIPT = """
import subprocess, sys
from pathlib import Path
from shardctl.metadata.index import workers as local_runner
from tests.metadata.index.test_workers import tasks
local_runner._ALONE = -1
real = subprocess.Popen
def start(*arguments, **options):
    process = real(*arguments, **options)
    print(process.pid, flush=True)
    return process
subprocess.Popen = start
list(local_runner.LocalRunner(jobs=2).count(tasks(Path(sys.argv[1]), checksums=True)))
"""


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_the_one_that_asked(tmp_path: Path, end: signal.Signals) -> None:
    endless(tmp_path, 5)
    parent = start(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    assert all(map(is_running, workers))
    parent.send_signal(end)
    parent.wait(10)
    deadline = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, workers))
    parent.stdout.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended and that nobody waited for.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.long
def test_processes_find_modules_whatever_the_path_is(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    (tmp_path / "files").mkdir()
    for index in range(3):
        (tmp_path / f"files/train-{index}.tfrecord").write_bytes(framed(*[b"x"] * index))
    script = f"""
import os, sys
from pathlib import Path
root = next(folder for folder in sys.path if os.path.isdir(os.path.join(folder, "shardctl")))
os.chdir(root)
sys.path[:] = ["", *(folder for folder in sys.path if folder != root), Path("a")]
sys.path += [f"/runfiles/{{'x' * 200}}/{{number}}" for number in range(1000)]
import shardctl
from shardctl.metadata.index import workers as local_runner
os.chdir({str(tmp_path)!r})
local_runner._ALONE = -1
print(shardctl.index("files", cache=False, jobs=2))
"""
    root = str(Path(local_runner.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 examples, 3 files" in done.stdout


def test_what_is_printed_as_python_starts_is_no_answer(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    noise = "print('hello ' * 10, flush=True)"
    (tmp_path / "site/sitecustomize.py").write_text(noise, encoding="utf-8")
    (tmp_path / "files").mkdir()
    for index in range(3):
        (tmp_path / f"files/{index}").write_bytes(framed(*[b"x"] * index))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    found = contents(LocalRunner(jobs=2).count(tasks(tmp_path / "files")))
    assert {index: one.num_records for index, one in found.items()} == {0: 0, 1: 1, 2: 2}
    assert len(processes) == 1


@pytest.mark.parametrize("limit", [0, 1])
def test_where_no_more_processes_can_be_started_those_that_are_do_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    for index in range(300):
        (tmp_path / f"{index:03}").write_bytes(framed(*[b"x"] * (index % 3)))
    started: list[int] = []
    real = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        if len(started) == limit:
            raise BlockingIOError("Resource temporarily unavailable")
        started.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(local_runner, "_ALONE", -1)
    found = contents(LocalRunner(jobs=4).count(tasks(tmp_path)))
    assert {index: one.num_records for index, one in found.items()} == {
        index: index % 3 for index in range(300)
    }
    assert len(started) == limit


def test_a_process_whose_parent_is_gone_ends_in_silence() -> None:
    parent, end = os.pipe()
    os.close(parent)
    code = "from shardctl.metadata.index.workers import main; main()"
    try:
        ran = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(end)
    assert (ran.returncode, ran.stderr) == (0, b"")
