"""The scripts that make shells ask, and what bash makes of the answers."""

from __future__ import annotations

import json
import os
import re
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


def test_zsh_reads_no_pattern_in_a_spec() -> None:
    assert "alias shardctl='noglob shardctl'" in completion_script("zsh").splitlines()


_BASH_QUESTION = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} TEXT=$3
shift 3
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shardctl_completion "$SHARDCTL" "$TEXT"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "words", "text", "reply"),
    [
        ("shardctl la", ["shardctl", "la"], "la", "layout"),
        # Bash has broken the words at ':' and '=', and puts the answer in place of the last piece,
        # without a quote that is open: what its function gets as $2.
        ("shardctl plan -d mnist:", ["shardctl", "plan", "-d", "mnist", ":"], "", "3.0.1"),
        ("shardctl plan -d mnist:3", ["shardctl", "plan", "-d", "mnist", ":", "3"], "3", "3.0.1"),
        (
            "shardctl plan -d 'mnist:3",
            ["shardctl", "plan", "-d", "'mnist:3"],
            "mnist:3",
            "mnist:3.0.1",
        ),
        (
            "shardctl plan -d mnist train[40:]+te",
            ["shardctl", "plan", "-d", "mnist", "train[40", ":", "]+te"],
            "]+te",
            "]+test",
        ),
        ("shardctl plan --format=j", ["shardctl", "plan", "--format", "=", "j"], "j", "json"),
        ("", ["shardctl", "plan", "-d", "fash"], "fash", "fashion_mnist"),
    ],
)
def test_bash_puts_the_answer_where_its_word_begins(
    line: str, words: list[str], text: str, reply: str, tmp_path: Path
) -> None:
    program = tmp_path / "shardctl"
    write_shardctl(program)
    script = _REPOSITORY / "completions" / "shardctl.bash"
    ran = subprocess.run(
        ["bash", "--norc", "-c", _BASH_QUESTION, "bash", script, line, text, *words],
        env={**os.environ, "SHARDCTL": str(program), "PYTHONPATH": str(_REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (f"{reply}\n", "")


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


def test_scripts_name_no_function_that_another_program_could_have() -> None:
    for shell in SHELLS:
        defined = re.findall(r"^(?:function )?([\w.-]+)(?:\(\) \{| *$)", completion_script(shell))
        assert all("shardctl" in name for name in defined)
