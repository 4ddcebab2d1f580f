"""Huge questions: answered at once, refused with what they would take, or ended by Ctrl-C."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.children import run_command, run_on_a_terminal, running_command
from tests.cli.conftest import Shardctl

_LONGEST = 1.0  # seconds from Ctrl-C to the end, on a machine with nothing else to do


@pytest.fixture
def huge(tmp_path: Path) -> str:
    """A layout of 10^15 examples."""
    path = tmp_path / "huge.yaml"
    path.write_text("splits: {train: {num_examples: 1000000000000000, num_shards: 1000}}\n")
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("words", ["quality --shuffle-seed 1", "lint train --epochs 1000"])
def test_what_needs_no_walk_through_the_order_is_answered(
    words: str, huge: str, shardctl: Shardctl
) -> None:
    said = shardctl(*words.split(), "-d", huge)
    assert said.exit_code in (0, 1), said.stderr
    assert "error" not in said.stderr


@pytest.mark.long
def test_all_of_a_huge_order_goes_to_whoever_reads_as_much_as_is_wanted(huge: str) -> None:
    words = f"simulate -d {huge} --take -1 -f ids".split()
    with running_command(*words, folder=Path(huge).parent) as running:
        assert [running.stdout.readline() for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
        running.stdout.close()
        assert (running.stderr.read(), running.process.wait(timeout=30)) == (b"", 0)


_LONG = [
    "simulate -d HUGE --take -1 -f ids",
    "simulate -d HUGE --take -1 --shuffle-seed 3 --buffer 100_000 --buffer-seed 1 -f npy",
    "snapshot -d mnist --epochs 10_000_000",
    "resume -d imagenet2012 --consumed 5 --epochs 1000 --repeat-files --prove -f json",
    "hosts -d imagenet2012 --hosts 990001-1000000",
    "hosts -d imagenet2012 --hosts 1_000_000 -f json",
    "plan train -d imagenet2012 --hosts 1_000_000 -f yaml",
    "locate -d imagenet2012 --id 3 --epochs 1_000_000 --shuffle-seed 1",
    "simulate -d HUGE --take 9 --skip 999_999_999_999 --buffer 20_000_000 --buffer-seed 1",
]


def seconds_to_end(words: str, folder: Path, delay: float) -> float:
    """Return how long a program that has started lives on after Ctrl-C, with exit code 130.

    One that is at its end has no handler any more: the signal ends it, which shells call 130 too.
    """
    with running_command(*words.split(), folder=folder, to=os.devnull) as running:
        time.sleep(delay)
        if running.process.poll() is not None:
            return 0.0
        begin = time.monotonic()
        running.process.send_signal(signal.SIGINT)
        said = running.stderr.read()
        code = running.process.wait(timeout=60)
        needed = time.monotonic() - begin
    lines = said.splitlines()  # of the answer: notes and proofs, and nothing of the end
    assert all(line.startswith((b"note: ", b"proof: ")) for line in lines), said
    assert code in (0, 130, -signal.SIGINT), words
    return needed


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [*_LONG[:3], *(pytest.param(words, marks=pytest.mark.slow) for words in _LONG[3:])]
)
def test_long_work_ends_soon_after_an_interrupt(words: str, huge: str, tmp_path: Path) -> None:
    delay = random.Random(words).uniform(0.05, 0.2)
    assert seconds_to_end(words.replace("HUGE", huge), tmp_path, delay) < 10 * _LONGEST


@pytest.mark.fuzz
def test_an_interrupt_at_any_moment_ends_long_work_soon(huge: str, tmp_path: Path) -> None:
    chance = random_of_a_fuzz_run()
    needed = []
    for _ in counted(range(max(FUZZ // 20, 1))):
        words = chance.choice(_LONG).replace("HUGE", huge)
        needed.append(seconds_to_end(words, tmp_path, chance.uniform(0, 4)))
    needed.sort()
    print(f"{len(needed)} interrupts: median {needed[len(needed) // 2]:.2f} s, {needed[-1]:.2f} s")
    assert needed[-1] < 10 * _LONGEST
    assert needed[len(needed) // 2] < _LONGEST


def test_long_work_of_any_command_shows_how_far_it_is() -> None:
    words = "hosts -d imagenet2012 --hosts 1-200 -f csv"
    _, error = run_on_a_terminal(*words.split(), columns=80, patience=0)
    assert "hosts and files" in error
    assert "%" in error


def test_a_fifo_or_a_device_is_not_waited_for(shardctl: Shardctl, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for words, message in (
        (f"resume -d mnist --seen {fifo}", "is a named pipe, a device or a socket"),
        ("resume -d mnist --seen /dev/zero", "'/dev/zero' is a named pipe, a device"),
        (f"simulate -d {fifo}", "is neither a layout file"),
        (f"simulate -d mnist --file-order {fifo}", "is a pipe, a socket or a device"),
        (f"resume -d mnist --plan {fifo}", "is a pipe, a socket or a device"),
        (f"diff {fifo}", "is a pipe, a socket or a device"),
    ):
        said = shardctl(*words.split())
        assert said.exit_code == 2, words
        assert message in said.stderr


def test_a_log_may_come_through_a_pipe(shardctl: Shardctl, tmp_path: Path) -> None:
    log = shardctl("simulate", "-d", "mnist", "-f", "tfds-ids").stdout.encode()
    (tmp_path / "log").write_bytes(log)
    expected = shardctl("resume", "-d", "mnist", "--seen", tmp_path / "log", "-f", "json").stdout
    read_end, write_end = os.pipe()
    os.write(write_end, log)
    os.close(write_end)
    words = ("resume", "-d", "mnist", "-f", "json", "--seen")
    assert shardctl(*words, f"/dev/fd/{read_end}").stdout == expected
    os.close(read_end)
    with open(tmp_path / "log") as stdin:
        done = run_command(*words, "-", folder=tmp_path, stdin=stdin.fileno())
    assert done.out == expected
