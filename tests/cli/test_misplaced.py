"""An option in the wrong place: the error says where it goes, and what it says works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import shardctl as api
from shardctl.cli.failures import where_it_goes
from shardctl.cli.main import COMMANDS
from tests.children import run_command
from tests.cli.conftest import Shardctl

CASES = [
    # before the command
    ("-d mnist plan train", "-d belongs behind the command: shardctl plan -d mnist train"),
    ("-dmnist plan train", "-d belongs behind the command: shardctl plan -dmnist train"),
    ("--take=3 simulate", "--take belongs behind the command: shardctl simulate --take=3"),
    ("--no-reverse quality", "--no-reverse belongs behind the command: shardctl quality --no-rev"),
    ("--consumed 3 plan train", "--consumed is an option of resume, not of plan; shardctl -h exp"),
    ("--cycel 3 simulate", "no option '--cycel'; close options of simulate: --cycle; shardctl -h"),
    ("--consumed 3", "--consumed belongs behind a command, as in shardctl resume --consumed 3; "),
    ("-q", "no option '-q'; choose from --version, --color, --help; shardctl -h explains"),
    (
        "--batch_size 8 simulate",
        "--batch_size belongs behind the command: shardctl simulate --batch_size 8; shardctl -h",
    ),
    ("--seed 8 simulate", "no option '--seed'; choose from "),
    # behind another command
    ("plan train --interleave-cycle-length 8", "--interleave-cycle-length is an option of simul"),
    ("plan train --consumed 5", "--consumed is an option of resume, not of plan; shardctl plan -h"),
    ("locate --consumed=3", "--consumed is an option of resume, not of locate"),
    ("plan train --cpu 3", "no option '--cpu'; choose from --dataset, "),
    # of shardctl itself
    ("plan --version", "--version goes without a command: shardctl --version; shardctl plan -h"),
    ("plan -V", "-V goes without a command: shardctl -V"),
]


@pytest.mark.parametrize(("line", "said"), CASES)
def test_the_error_says_where_it_goes(line: str, said: str, shardctl: Shardctl) -> None:
    ran = shardctl(*shlex.split(line))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {said}")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "line", ["-d mnist plan train", "--take=3 simulate", "plan -V", "-f json --batch 3 simulate"]
)
def test_what_it_says_to_type_works(line: str, shardctl: Shardctl) -> None:
    said = shardctl(*shlex.split(line)).stderr
    typed = shlex.split(said.partition(": shardctl ")[2].rpartition(";")[0])
    assert typed
    assert shardctl(*typed).exit_code == 0


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    ran = run_command("--cycle", "3", "simulate", "train[:5]", folder=tmp_path)
    assert ran.errors == (
        "error: --cycle belongs behind the command: shardctl simulate --cycle 3 'train[:5]'; "
        "shardctl -h explains\n"
    )
    assert (ran.code, ran.out) == (2, "")


def test_several_owners_are_all_named() -> None:
    said = where_it_goes("--cycle", ["plan", "train", "--cycle", "3"], COMMANDS)
    assert said is not None
    assert said.startswith("--cycle is an option of simulate, locate, resume, hosts, ")
    assert said.endswith(", not of plan")


def test_what_nobody_knows_has_no_place() -> None:
    assert where_it_goes("--warp", ["plan", "--warp"], COMMANDS) is None
    assert where_it_goes("--warp", ["--warp"], COMMANDS) is None


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(option: str, shardctl: Shardctl) -> None:
    ran = shardctl(option)
    assert (ran.exit_code, ran.stdout) == (0, f"shardctl {api.__version__}\n")
