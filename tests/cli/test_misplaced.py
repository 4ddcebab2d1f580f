"""An option in the wrong place: the error says where it goes."""

from __future__ import annotations

import shlex

import pytest

import shardctl as api
from tests.cli.conftest import Shardctl

CASES = [
    ("-d mnist plan train", "-d belongs behind a command; layout, plan, simulate, "),
    ("--no-reverse quality", "--no-reverse belongs behind a command; simulate, "),
    ("--batch_size 8 simulate", "--batch_size belongs behind a command; simulate, "),
    ("--consumed 3", "--consumed belongs behind a command; resume take it; shardctl -h explains"),
    ("-q", "no option '-q'; choose from --version, --color, --help; shardctl -h explains"),
    ("--seed 8 simulate", "no option '--seed'; choose from "),
    ("plan train --interleave-cycle-length 8", "--interleave-cycle-length is an option of simul"),
    ("plan train --consumed 5", "--consumed is an option of resume, not of plan; shardctl plan -h"),
    ("locate --consumed=3", "--consumed is an option of resume, not of locate"),
    ("plan train --cpu 3", "no option '--cpu'; choose from --dataset, "),
]


@pytest.mark.parametrize(("line", "said"), CASES)
def test_the_error_says_where_it_goes(line: str, said: str, shardctl: Shardctl) -> None:
    ran = shardctl(*shlex.split(line))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {said}")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(option: str, shardctl: Shardctl) -> None:
    ran = shardctl(option)
    assert (ran.exit_code, ran.stdout) == (0, f"shardctl {api.__version__}\n")
