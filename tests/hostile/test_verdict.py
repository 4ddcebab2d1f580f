"""What counts as a failure, and that a worker lives through all of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import shardctl.cli.main
from tests.hostile import verdict, worker
from tests.hostile.kinds import KINDS, Case, Sources, content_of
from tests.hostile.verdict import Outcome, faults
from tests.hostile.worker import Worker, made_case

_REPOSITORY = Path(__file__).parents[2]


def outcome(**what: Any) -> Outcome:
    good: dict[str, Any] = {
        "arguments": ("plan",),
        "exit_code": 0,
        "stdout": b"",
        "stderr": b"",
        "seconds": 0.1,
    }
    return Outcome(**(good | what))


C, G, X = ("plan", "-f", "csv"), ("lint", "-f", "github"), frozenset({"x"})


@pytest.mark.parametrize(
    "good",
    [
        {"stdout": "名前 a\n".encode()},
        {"exit_code": 1},
        {"arguments": ("snapshot",), "seconds": 5.5, "exit_code": 130, "interrupted": True},
        {"exit_code": 2, "stderr": b"warning: a\nerror: b\n"},
        {"arguments": G, "stdout": b"::error title=a::b\n"},
        {"arguments": C, "stdout": b"a,b\n-1,'=1\n"},
        {"arguments": (*C, "--help"), "stdout": b"  -d, --dataset\n"},
        {"arguments": ("plan", "-f", "npy"), "stdout": b"\x93NUMPY\0"},
        {"arguments": ("plan", "-o", "x"), "new_files": X},
        {"arguments": ("diff", "x", "--update"), "changed": X},
        {"arguments": ("diff", "x", "y"), "exit_code": 2, "stderr": b"error: a\nerror: b\n"},
    ],
)
def test_what_is_right(good: dict[str, Any]) -> None:
    assert list(faults(outcome(**good))) == []


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ({"exit_code": None, "raised": "ValueError: a"}, "raised ValueError: a"),
        ({"exit_code": 3}, "exit code 3"),
        ({"exit_code": 2}, "0 error lines and exit code 2"),
        ({"stderr": b"error: a\n"}, "1 error lines and exit code 0"),
        ({"exit_code": 2, "stderr": b"error: a\nerror: b\n"}, "2 error lines and exit code 2"),
        ({"exit_code": 2, "stderr": b"error: internal error: X\n"}, "internal error: .*"),
        ({"exit_code": 2, "stderr": b"error: out of memory; a\n"}, "more than .* MiB"),
        ({"exit_code": 130}, "exit code 130"),
        ({"arguments": ("layout",), "exit_code": 130, "interrupted": True}, "more than 5 s of .*"),
        ({"arguments": ("diff",), "seconds": 7.5, "exit_code": 130, "interrupted": True},
         "stops 2.5 s after an interrupt"),
        ({"must_fail": True}, "an edited file passes"),
        ({"stdout": b"\xff"}, "stdout is not UTF-8"),
        ({"stdout": b"a\x1b[1m"}, "stdout holds .*"),
        ({"stderr": "\u202e".encode()}, "stderr holds .*"),
        ({"stdout": b"a\n  ::debug::b\n"}, "stdout holds a command of CI: .*"),
        ({"stdout": b"a ##vso[b]"}, "stdout holds a command of CI: .*"),
        ({"stdout": b"::error title=a::b\n"}, "stdout holds a command of CI: .*"),
        ({"arguments": G, "stdout": b"::add-mask::a\n"}, "stdout holds a command of CI: .*"),
        ({"arguments": ("plan", "--format=json"), "stdout": b"{"}, "stdout is not JSON: .*"),
        ({"arguments": C, "stdout": b"a\n =1+1\n"}, "CSV holds the formula .*"),
        ({"new_files": frozenset({".x.123"})}, "left '.x.123' behind"),
        ({"changed": frozenset({"l.yaml"})}, "changed 'l.yaml'"),
        ({"arguments": ("plan", "-o", "x"), "exit_code": 2, "stderr": b"error: a\n",
          "new_files": X}, "a file of a command that failed"),
    ],
)  # fmt: skip
def test_what_is_a_failure(bad: dict[str, Any], fault: str) -> None:
    (found,) = faults(outcome(**bad))
    assert re.fullmatch(fault, found)


Runs = Callable[[Callable[[Sequence[str]], None]], list[str]]


@pytest.fixture
def failures_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """A function that returns the faults of a worker whose command line is a function."""

    def run(main: Callable[[Sequence[str]], None]) -> list[str]:
        monkeypatch.setattr(shardctl.cli.main, "main", main)
        monkeypatch.setitem(KINDS, "toy", lambda rng, _: Case(commands=[["layout"]]))
        worker = Worker(Sources(files={}, records={}), tmp_path)
        try:
            return [failure.fault for _ in range(2) for failure in worker.tried("toy", "1")]
        finally:
            worker.close()

    return run


def test_lengths_that_are_spaced_in_another_way_are_no_edit() -> None:
    spaced = content_of(b"splits: [{shard_lengths: '5 0 7'}]")
    assert content_of(b'{"splits": [{"shard_lengths": "\\n5 0  7\\n"}]}') == spaced
    assert content_of(b"splits: [{shard_lengths: '50 7'}]") != spaced


def test_a_worker_notices_what_a_command_does(failures_of: Runs) -> None:
    def main(arguments: Sequence[str]) -> None:
        os.write(1, b"\x1b")
        Path("stray").touch()
        sys.exit(0)

    assert failures_of(main) == ["stdout holds '\\x1b'", "left 'stray' behind"] * 2


def test_a_worker_outlives_the_end_of_its_child(failures_of: Runs) -> None:
    assert failures_of(lambda arguments: os._exit(7)) == ["the process ended with status 7"] * 2


def test_a_case_is_the_same_each_time() -> None:
    names = ("l.yaml", "plan0.yaml", "snapshot0.yaml")
    for kind in ("metadata", "layouts", "settings", "arguments"):
        sources = Sources(files=dict.fromkeys(names, b""), records={})
        assert made_case(kind, "1:5", sources) == made_case(kind, "1:5", sources)
        assert made_case(kind, "1:5", sources) != made_case(kind, "1:6", sources)


@pytest.mark.slow
def test_the_script_prints_a_line_for_each_kind() -> None:
    command = [sys.executable, "-m", "tests.hostile", "--budget", "2", "--kind", "positions"]
    ran = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    heading, line, limits = ran.stdout.splitlines()
    assert heading.split() == ["kind", "tried", "failures", "seconds"]
    assert line.split()[:3] == ["positions", "2", "0"]
    assert limits.startswith("limits of a command: 5 s of processor time, ")


@pytest.mark.long
def test_what_takes_too_long_is_interrupted(
    failures_of: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (verdict, worker):
        monkeypatch.setattr(module, "SECONDS", 0.2)

    def main(arguments: Sequence[str]) -> None:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            sys.exit(130)

    assert failures_of(main) == ["more than 0.2 s of processor time"] * 2
