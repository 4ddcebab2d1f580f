"""Commands that answers suggest: each alone on its line, and what bash makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl

# What bash would take for a command, an option, a variable, a quote or an end of the line.
NAMES = [
    "-rf.yaml",
    "a b.yaml",
    "`touch x`.yaml",
    "$(touch x).yaml",
    "it's.yaml",
    '"q".yaml',
    "new\nline.yaml",
    "*?.yaml",
    "\x1b[31m\\é~.yaml",
]
SHOW = 'shardctl() { printf "%s\\0" "$@"; }\n'


def pasted(line: str) -> list[str]:
    """Return the arguments that a line has once it is pasted into bash."""
    ran = subprocess.run(["bash", "-c", SHOW + line], capture_output=True, check=True, text=True)
    return ran.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_suggested_command_can_be_pasted(shardctl: Shardctl, name: str) -> None:
    Path("toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n")
    path = f"./{name}" if name.startswith("-") else name
    commands = {
        ("snapshot", "-d", "toy.yaml", "-o", name): [["diff", path]],
        ("diff", path, "--block", "2"): [["diff", path, "--block", "2", "--update"]],
        ("lint", "-d", "toy.yaml"): [["lint", "--explain", "SC017"]],
        ("resume", "-d", "toy.yaml", "--consumed", "2", "-o", name): [
            ["resume", "--plan", path, "-d", "toy.yaml", "--prove"]
        ],
    }
    for words, expected in commands.items():
        ran = shardctl(*words)
        lines = (ran.stdout + ran.stderr).splitlines()
        found = [line for line in lines if line.startswith("  shardctl ")]
        assert list(map(pasted, found)) == expected
    assert not Path("x").exists()


def test_a_script_with_an_awkward_name_can_be_pasted(shardctl: Shardctl) -> None:
    for name in ("a b.py", "-rf.py", "it's `x`.py"):
        Path(name).write_text("def make(): pass\n")
        (line,) = [
            one for one in shardctl("inspect", "--", name).stderr.splitlines() if "shardctl" in one
        ]
        path = f"./{name}" if name.startswith("-") else name
        assert pasted(line) == ["inspect", f"{path}:make"]
