"""Temporary files: what killed writers leave is gone with the next write, what lives stays."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shardctl.errors import UsageError
from shardctl.files.atomic import new_file, temporary_names
from tests.cases import FUZZ, add_cases, seed_of_test

# Forked children write without end and are killed; argv: the target, how, the seed, the kills.
KILLED_WRITERS = """
import os, random, signal, sys, time
from shardctl.cli.output import write
from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.saved.position_file import PositionRecord, read_position, write_position

target, how, seed, kills = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
dataset = Dataset(name="d", splits=(Split.even(name="train", num_examples=9, num_shards=3),))

def write_once(number):
    if how == "position":
        record = PositionRecord(
            dataset=dataset.identity, spec="train", settings=ReadSettings(), consumed=number
        )
        write_position(target, record)
    else:
        write((f"{number:09}\\n" for _ in range(3000)), target)

def check():
    if how == "position":
        read_position(target)  # has a digest
    else:
        lines = open(target).read().split()
        assert len(lines) == 3000 and len(set(lines)) == 1, len(lines)

write_once(0)
moments = random.Random(seed)
left = 0
for kill in range(1, kills + 1):
    child = os.fork()
    if not child:
        number = 0
        while True:
            number += 1
            write_once(number)
    time.sleep(moments.random() * 0.006)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left += len(os.listdir(os.path.dirname(target))) - 1
    check()
    if kill % 5 == 0:
        write_once(kill)
        assert os.listdir(os.path.dirname(target)) == [os.path.basename(target)]
        check()
print(left)
"""


def kill_writers(folder: Path, how: str, seed: int, kills: int) -> int:
    """Return how many times a killed writer left a file; what remains is checked by the child."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WRITERS, folder / "target", how, str(seed), str(kills)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    add_cases(kills)
    print(f"{how}: {kills} kills, seed {seed}: {done.stdout.strip()} times a file was left")
    return int(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("how", ["position", "output"])
def test_what_killed_writers_leave_is_gone_with_the_next_write(tmp_path: Path, how: str) -> None:
    # That kills hit the writing is part of the test: some leave a file until then.
    assert kill_writers(tmp_path, how, seed=1, kills=60) > 0


@pytest.mark.fuzz
@pytest.mark.parametrize("how", ["position", "output"])
def test_any_number_of_killed_writers_leaves_nothing(tmp_path: Path, how: str) -> None:
    kill_writers(tmp_path, how, seed_of_test(), FUZZ // 5 * 5)


def put(path: Path, text: str) -> None:
    with new_file(str(path)) as file:
        file.write(text.encode())


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


def test_an_error_after_the_last_step_takes_nobodys_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An interrupt may come when the file has its name, and its old name is another writer's.
    target = tmp_path / "out"
    other = Path(next(temporary_names(str(target))))
    replace = os.replace

    def interrupted(source: str, to: str) -> None:
        replace(source, to)
        other.write_text("of another")
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(target, "new")
    assert (target.read_text(), other.read_text()) == ("new", "of another")


def test_many_writers_of_one_target_all_end_well(tmp_path: Path) -> None:
    target = tmp_path / "out"
    failures: list[BaseException] = []
    gate = threading.Barrier(24)

    def write_often(text: str) -> None:
        try:
            gate.wait()
            for _ in range(5):
                put(target, text * 5000)
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


def test_without_locks_nothing_of_others_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    target = tmp_path / "out"
    names = [Path(name) for name in temporary_names(str(target))]
    names[0].write_text("whose?")
    monkeypatch.setattr(fcntl, "flock", no_locks)
    put(target, "x")
    assert sorted(os.listdir(tmp_path)) == [".out.shardctl-0", "out"]
    for name in names:
        name.write_text("whose?")
    with pytest.raises(UsageError, match=r"\.out\.shardctl-0 and others like it are in the way"):
        put(target, "y")
    assert target.read_text() == "x"


def test_what_killed_writers_leave_is_gone_on_nfs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def flock_of_nfs(handle: int, operation: int) -> None:
        # As flock(2) says: it is a lock of fcntl(2), for which the file must be open for writing.
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(handle, operation)

    target = tmp_path / "out"
    for name in temporary_names(str(target)):
        Path(name).write_text("left")
    monkeypatch.setattr(fcntl, "flock", flock_of_nfs)
    put(target, "x")
    assert os.listdir(tmp_path) == ["out"]


def test_names_in_the_way_that_are_no_files_are_passed_over(tmp_path: Path) -> None:
    names = [Path(name) for name in temporary_names(str(tmp_path / "out"))]
    names[0].mkdir()
    os.mkfifo(names[1])
    (tmp_path / "elsewhere").write_text("kept")
    names[2].symlink_to("elsewhere")
    put(tmp_path / "out", "x")
    assert (tmp_path / "out").read_text() == "x"
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert all(os.path.lexists(name) for name in names[:3])
