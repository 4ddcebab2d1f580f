"""What shells offer after a TAB, and the scripts that make them ask."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.cli.completion.scripts import SHELLS, completion_script
from shardctl.cli.completion.shell import split_line
from shardctl.cli.main import COMMANDS
from tests.cli.conftest import Shardctl

_REPOSITORY = Path(__file__).parents[3]
_FILES = {"bash": "shardctl.bash", "zsh": "_shardctl", "fish": "shardctl.fish"}

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """A function that returns what is offered at the end of a line, words alone."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        ran = shardctl()
        assert (ran.exit_code, ran.stderr) == (0, "")
        return ran.stdout.splitlines()

    return ask


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for version in ("birds/red/1.0.0", "birds/blue/1.0.0", "bits/2.0.0", "bits/2.1.0"):
        folder = root / version
        folder.mkdir(parents=True)
        (folder / "dataset_info.json").write_text(
            '{"name": "bits", "version": "1.0.0", "splits": ['
            '{"name": "left", "shardLengths": ["3"]}, {"name": "right", "shardLengths": ["4"]}]}'
        )
    (root / "bad name\x1b[31m;$(x)" / "1.0.0").mkdir(parents=True)
    (root / "bad name\x1b[31m;$(x)" / "1.0.0" / "dataset_info.json").touch()
    return root


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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("shardctl ", list(COMMANDS)),
        ("shardctl la", ["layout"]),
        ("/opt/bin/shardctl la", ["layout"]),
        ("shardctl nothing ", []),
        ("shardctl --v", ["--version"]),
        ("shardctl plan --drop", ["--drop-remainder"]),
        ("shardctl plan --drop-remainder --drop", []),
        ("shardctl simulate --no-res", ["--no-reshuffle"]),
        ("shardctl plan -- --drop", []),
        ("shardctl plan -f ", ["table", "json", "yaml", "csv"]),
        ("shardctl plan --format=j", ["--format=json"]),
        ("shardctl plan --format j", ["json"]),
        ("shardctl simulate -f t", ["table", "tfds-ids"]),
        ("shardctl simulate --host-by ", ["even", "files", "examples"]),
        ("shardctl simulate --host-by=e", ["--host-by=even", "--host-by=examples"]),
        ("shardctl simulate --loop k", ["keras-fit"]),
        ("shardctl simulate --epochs ", []),
        ("shardctl plan -o ", []),
        ("shardctl plan -d mnist ", ["train", "test", "all"]),
        ("shardctl plan -d mnist 'tr", ["train"]),
        ('shardctl plan -d "mnist" "tr', ["train"]),
        ("shardctl plan --dataset=mnist te", ["test"]),
        ("shardctl plan tr -d mnist", ["mnist"]),
        ("shardctl plan -d mnist train[40:]+te", ["train[40:]+test"]),
        ("shardctl plan -d mnist train te", ["test"]),
        ("shardctl simulate -d mnist train te", []),
        ("shardctl simulate -d mnist --epochs x v", []),
        ("shardctl simulate -d mnist --epochs x te", ["test"]),
        ("shardctl plan -d mnist train[", []),
        ("shardctl plan -d no-such-dataset tr", []),
        ("shardctl plan -d fashion", ["fashion_mnist"]),
        ("shardctl plan -d mnist:", ["mnist:3.0.1"]),
        ("shardctl plan --dataset=mnist:", ["--dataset=mnist:3.0.1"]),
        ("shardctl plan -d coco/2017:1", ["coco/2017:1.1.0"]),
        ("shardctl plan -d './da", []),
        ("shardctl plan \\", []),
        ("shardctl", []),
        ("", []),
    ],
)
def test_offers(line: str, words: list[str], offered: Offered) -> None:
    if line in ("", "shardctl"):
        words = list(COMMANDS)  # nothing is typed yet
    found = offered(line)
    assert [word for word in found if word != "-h"] == words


def test_datasets_are_those_of_the_chosen_data_dir_and_the_catalog(
    offered: Offered, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "birds" not in offered("shardctl plan -d ")
    chosen = f"shardctl plan --data-dir {data_dir} -d "
    assert {"birds", "bits", "mnist"} <= set(offered(chosen))
    assert offered(f"{chosen}bi") == ["birds", "bits"]
    assert offered(f"{chosen}bird") == ["birds", "birds/blue", "birds/red"]
    assert offered(f"{chosen}birds/r") == ["birds/red"]
    assert offered(f"{chosen}bits:") == ["bits:2.0.0", "bits:2.1.0"]
    assert offered(f"{chosen}bits:2.0.0 ") == ["left", "right", "all"]
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert offered("shardctl plan -d bi") == ["birds", "bits"]
    monkeypatch.delenv("TFDS_DATA_DIR")
    Path("shardctl.yaml").write_text(f"data_dir: {data_dir}\n", encoding="utf-8")
    assert offered("shardctl plan -d bi") == ["birds", "bits"]
    assert offered("shardctl plan -d bits l") == ["left"]


def test_a_name_that_a_shell_or_a_terminal_would_act_on_is_not_offered(
    offered: Offered, data_dir: Path
) -> None:
    assert offered(f"shardctl plan --data-dir {data_dir} -d bad") == []


def test_a_broken_dataset_offers_nothing_in_silence(offered: Offered) -> None:
    Path("layout.yaml").write_text("splits: [\x00", encoding="utf-8")
    assert offered("shardctl plan -d layout.yaml ") == ["all"]
    Path("shardctl.yaml").write_text("dataset: [", encoding="utf-8")
    assert offered("shardctl plan ") == ["all"]
    assert "mnist" in offered("shardctl plan -d ")


@pytest.mark.parametrize("missing", [{"COMP_WORDS": "shardctl pl"}, {}, {"COMP_CWORD": "x"}])
def test_a_broken_request_gets_no_answer(
    missing: dict[str, str], shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
    for name, value in missing.items():
        monkeypatch.setenv(name, value)
    ran = shardctl()
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")


def test_an_unknown_shell_is_refused(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "source_ksh")
    ran = shardctl()
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: no _SHARDCTL_COMPLETE 'source_ksh'; it has: source_bash, source_zsh, source_fish, "
        "complete_bash, complete_zsh, complete_fish\n"
    )


_ENOUGH = {
    "plan": ["train"],
    "locate": ["--id", "0"],
    "resume": ["--consumed", "0"],
    "hosts": ["--hosts", "1"],
    "eval": ["--batch", "1"],
    "diff": ["a"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_formats_offered_are_those_the_command_takes(
    command: str, shardctl: Shardctl, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = shardctl(command, *_ENOUGH.get(command, []), "--format", "none")
    assert refused.stderr.startswith("error: no format 'none' here; choose from ")
    taken = refused.stderr.strip().removeprefix("error: no format 'none' here; choose from ")
    assert offered(f"shardctl {command} --format ") == taken.split(", ")


def test_zsh_and_fish_get_what_an_option_does(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl plan --dr")
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_fish")
    assert shardctl().stdout == "--drop-remainder\tLeave out what N does not divide.\n"
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_zsh")
    assert shardctl().stdout == "--drop-remainder:Leave out what N does not divide.\n"
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl plan -d mnist:")
    assert shardctl().stdout == "mnist\\:3.0.1\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a  b", ["a", "b"]),
        ("a 'b c", ["a", "b c"]),
        ('a "b \\', ["a", "b \\"]),
        ("a b\\", ["a", "b\\"]),
        ("a 'it'\"s", ["a", "its"]),
    ],
)
def test_a_line_splits_as_far_as_it_is_typed(line: str, words: list[str]) -> None:
    assert split_line(line) == words


_BASH_QUESTION = r"""
source "$1"
shift
COMP_LINE=$1 COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shardctl_completion "$SHARDCTL"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "words", "reply"),
    [
        ("shardctl la", ["shardctl", "la"], "layout"),
        # Bash has broken the words at ':' and '=', and puts the answer in place of the last piece.
        ("shardctl plan -d mnist:", ["shardctl", "plan", "-d", "mnist", ":"], "3.0.1"),
        ("shardctl plan -d mnist:3", ["shardctl", "plan", "-d", "mnist", ":", "3"], "3.0.1"),
        ("shardctl plan -d 'mnist:3", ["shardctl", "plan", "-d", "'mnist:3"], "mnist:3.0.1"),
        (
            "shardctl plan -d mnist train[40:]+te",
            ["shardctl", "plan", "-d", "mnist", "train[40", ":", "]+te"],
            "]+test",
        ),
        ("shardctl plan --format=j", ["shardctl", "plan", "--format", "=", "j"], "json"),
        ("", ["shardctl", "plan", "-d", "fash"], "fashion_mnist"),
    ],
)
def test_bash_puts_the_answer_where_its_word_begins(
    line: str, words: list[str], reply: str, tmp_path: Path
) -> None:
    program = tmp_path / "shardctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shardctl "$@"\n')
    program.chmod(0o755)
    script = _REPOSITORY / "completions" / "shardctl.bash"
    ran = subprocess.run(
        ["bash", "--norc", "-c", _BASH_QUESTION, "bash", script, line, *words],
        env={**os.environ, "SHARDCTL": str(program), "PYTHONPATH": str(_REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (f"{reply}\n", "")


def test_scripts_name_no_function_that_another_program_could_have() -> None:
    for shell in SHELLS:
        defined = re.findall(r"^(?:function )?([\w.-]+)(?:\(\) \{| *$)", completion_script(shell))
        assert all("shardctl" in name for name in defined)
