"""The scripts that make shells ask, and what bash makes of the answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shardctl.cli.completion import SHELLS, completion_script
from tests.children import write_shardctl
from tests.cli.conftest import Shardctl

_REPOSITORY = Path(__file__).parents[3]


_FILES = {"bash": "shardctl.bash", "zsh": "_shardctl", "fish": "shardctl.fish"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_in_completions_are_those_the_program_writes(
    shell: str, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SHARDCTL_COMPLETE", f"source_{shell}")
    ran = shardctl()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == completion_script(shell)
    assert ran.stdout == (_REPOSITORY / "completions" / _FILES[shell]).read_text(encoding="utf-8")


_SHELLS_ASKED = {
    "bash": """
source "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE}
_shardctl_completion "$SHARDCTL"
for answer in "${COMPREPLY[@]}"; do eval "printf '%s\\n' $answer"; done
""",
    "fish": "source $SCRIPT; complete -C $LINE",
    "zsh": """
compdef() { :; }
_describe() { print -l -- ${(P)4}; }
_files() { :; }
source "$SCRIPT"
words=(${(z)LINE} '') CURRENT=$#words words[1]=$SHARDCTL
_shardctl
""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_split_that_would_act_is_not_in_what_a_shell_puts_in_the_line(
    shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "shardctl"
    write_shardctl(program)
    names = ("--help", "-d", "$(touch acted)", "`touch acted`", ";touch acted", "=ls", "train")
    splits = {
        name: {"shard_lengths": [1], "filepath_template": f"{index}-{{SHARD_INDEX}}"}
        for index, name in enumerate(names)
    }
    (tmp_path / "l.json").write_text(json.dumps({"name": "x", "splits": splits}))
    ran = subprocess.run(
        [shell, "-c", _SHELLS_ASKED[shell]],
        env={
            **os.environ,
            "SHARDCTL": str(program),
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(_REPOSITORY),
            "SCRIPT": str(_REPOSITORY / "completions" / _FILES[shell]),
            "LINE": "shardctl plan -d l.json ",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(ran.stdout.splitlines()) == ["all", "train"]
    assert not (tmp_path / "acted").exists()
