"""What is offered at the cursor, and how a shell is told."""

from __future__ import annotations

import pytest

from shardctl.cli.completion import in_place_of, split_line
from shardctl.cli.main import COMMANDS
from tests.cli.completion.conftest import Offered
from tests.cli.conftest import Shardctl


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("shardctl ", list(COMMANDS)),
        ("shardctl la", ["layout"]),
        ("shardctl co", ["config"]),
        ("shardctl init --fo", ["--force"]),
        ("shardctl init -d mnist t", ["train", "test"]),
        ("shardctl config --shuffle-s", ["--shuffle-seed"]),
        ("/opt/bin/shardctl la", ["layout"]),
        ("shardctl nothing ", []),
        ("shardctl --v", ["--version"]),
        ("shardctl plan --drop", ["--drop-remainder"]),
        ("shardctl plan --drop-remainder --drop", []),
        ("shardctl plan --drop_remainder --drop", []),
        ("shardctl simulate --interleave_cycle_length=4 --cyc", []),
        ("shardctl simulate --interleave", []),
        ("shardctl simulate --host_by e", ["even", "examples"]),
        ("shardctl simulate --host_by=e", ["--host_by=even", "--host_by=examples"]),
        ("shardctl simulate --seed 3 --cyc", []),
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
        ("shardctl plan -d mnist 'train[:5%] + te", ["train[:5%] + test"]),
        ("shardctl plan -d mnist 'train[40:]+te'", ["train[40:]+test"]),
        ("shardctl plan -d mnist $(x", []),
        ("shardctl plan -d mnist 'train+\n+te", []),
        ("shardctl --help pla", ["plan"]),
        ("shardctl --version plan -f y", ["yaml"]),
        ("shardctl lint --explain SC06", ["SC061"]),
        ("shardctl lint --ignore SC001,SC06", ["SC001,SC061"]),
        ("shardctl plan \\", []),
        ("shardctl --color ", ["auto", "always", "never"]),
        ("shardctl --color n", ["never"]),
        ("shardctl --color never pla", ["plan"]),
        ("shardctl --color=never layout --al", ["--all"]),
        ("shardctl plan --color a", ["auto", "always"]),
        ("shardctl list fash", ["fashion_mnist"]),
        ("shardctl", []),
        ("", []),
    ],
)
def test_offers(line: str, words: list[str], offered: Offered) -> None:
    if line in ("", "shardctl"):
        words = list(COMMANDS)  # nothing is typed yet
    found = offered(line)
    assert [word for word in found if word != "-h"] == words


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
    "inspect": ["train.py:make"],
}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "init"])
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
    assert (
        shardctl().stdout
        == "--drop-remainder\tGive every host the same number; leave out the rest.\n"
    )
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_zsh")
    assert (
        shardctl().stdout
        == "--drop-remainder:Give every host the same number; leave out the rest.\n"
    )
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


@pytest.mark.parametrize(
    ("line", "text", "word", "put"),
    [
        # What is typed and what bash replaces of it, as an interactive bash 5.2 was seen to say.
        ("shardctl plan tr", "tr", "train", "train"),
        ("shardctl plan 'tr", "tr", "train", "train"),
        ("shardctl plan 'tr'", "'tr'", "train", "'train'"),
        (
            'shardctl plan "train[:10%]"+te',
            '"train[:10%]"+te',
            "train[:10%]+test",
            '"train[:10%]"+test',
        ),
        ("shardctl plan train'[:10%]+te", "[:10%]+te", "train[:10%]+test", "[:10%]+test"),
        ("shardctl plan train\\[:10%\\]+te", "10%\\]+te", "train[:10%]+test", "10%\\]+test"),
        ("shardctl plan --dataset='mnist:", "mnist:", "--dataset=mnist:3.0.1", "mnist:3.0.1"),
        ("shardctl plan -d mnist:", "", "mnist:3.0.1", "3.0.1"),
        ("shardctl plan ''", "''", "train", "'train'"),
        ("shardctl plan a\\'", "a\\'", "a'b", "a\\'b"),
        ("shardctl plan x", "x", "x[1]", "x\\[1\\]"),
        ("shardctl plan 'x", "x", "x[1]", "x[1]"),
        ("shardctl plan sc0", "sc0", "SC001", "SC001"),
        ("shardctl plan 'a'b", "'a'b", "other", None),
    ],
)
def test_bash_gets_what_belongs_in_place_of_its_text(
    line: str, text: str, word: str, put: str | None
) -> None:
    found = in_place_of(text, word, split_line(line)[-1], line)
    assert found == put
    if found is not None:  # and then the line reads as the word
        assert split_line(line.removesuffix(text) + found)[-1] == word
