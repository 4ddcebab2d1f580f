"""`shardctl help`: one source for options and guides, on a terminal, in a pipe, as a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shardctl.cli.main import COMMANDS
from shardctl.guide.guides import GUIDE_OF_COMMAND, guide_questions, read_guide
from tests.children import run_on_a_terminal
from tests.cli.conftest import Shardctl

SUBJECTS = tuple(guide_questions())
BOTH = sorted({*COMMANDS} & {*SUBJECTS})


def test_it_lists_commands_as_the_help_page_does_and_guides_as_well(shardctl: Shardctl) -> None:
    ran = shardctl("help")
    assert (ran.exit_code, ran.stderr) == (0, "")
    before, _, guides = ran.stdout.partition("Guides: shardctl help SUBJECT:\n")
    guides, _, after = guides.partition("\n\n")
    page = shardctl("-h").stdout
    assert " ".join(f"{before}{after}".split()) == " ".join(page.split())
    words = " ".join(guides.split())
    for subject, question in guide_questions().items():
        assert f"{subject} {question}" in words


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {*SUBJECTS}))
def test_a_command_gets_what_its_own_help_shows(command: str, shardctl: Shardctl) -> None:
    assert shardctl("help", command) == shardctl(command, "-h")


@pytest.mark.parametrize("subject", sorted({*SUBJECTS} - {*COMMANDS}))
def test_a_subject_gets_its_guide_as_it_was_written(subject: str, shardctl: Shardctl) -> None:
    ran = shardctl("help", subject)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, read_guide(subject).text, "")


@pytest.mark.parametrize("name", BOTH)
def test_a_name_that_is_both_gets_the_guide_and_then_the_options(
    name: str, shardctl: Shardctl
) -> None:
    options = shardctl(name, "-h").stdout
    heading = f"\n## Options of `shardctl {name}`\n\n"
    text = f"{read_guide(name).text}{heading}```text\n{options}```\n"
    assert shardctl("help", name).stdout == text


def test_there_are_names_that_are_both() -> None:
    assert {"resume", "hosts", "verify"} <= {*BOTH}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("resum", "error: no help page 'resum'; close help pages: resume\n"),
        (
            "evalution",
            "error: no help page 'evalution'; "
            "close help pages: evaluation, keras-evaluation, eval\n",
        ),
    ],
)
def test_a_name_that_is_neither_is_an_error_with_the_nearest(
    name: str, error: str, shardctl: Shardctl
) -> None:
    ran = shardctl("help", name)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", error)


def test_with_nothing_near_all_are_named(shardctl: Shardctl) -> None:
    ran = shardctl("help", "xyzzy")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert set(re.findall(r"[\w-]+", ran.stderr)) >= {*COMMANDS, *SUBJECTS}


def test_a_file_gets_the_markdown(shardctl: Shardctl) -> None:
    assert shardctl("help", "subsplits", "-o", "page.md").stdout == ""
    assert Path("page.md").read_text("utf-8") == read_guide("subsplits").text


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_gets_a_guide_laid_out_to_its_width(width: int) -> None:
    text, _ = run_on_a_terminal("help", "orders", columns=width, NO_COLOR="1")
    assert text.lstrip().startswith(read_guide("orders").question[:30])
    assert max(map(len, text.splitlines())) <= width
    assert "```" not in text
    assert "\x1b" not in text


def test_a_terminal_gets_the_options_as_the_command_shows_them() -> None:
    text, _ = run_on_a_terminal("help", "hosts", columns=80)
    options, _ = run_on_a_terminal("hosts", "-h", columns=80)
    assert text.endswith(f"\n\n{options}")
    assert "\x1b[1m" in text  # bold


def test_the_page_of_each_command_names_a_guide_that_is_there(shardctl: Shardctl) -> None:
    assert set(GUIDE_OF_COMMAND) == {*COMMANDS}
    assert {*GUIDE_OF_COMMAND.values()} <= {*SUBJECTS}
    assert [name for name in BOTH if GUIDE_OF_COMMAND[name] != name] == []
    for command, subject in GUIDE_OF_COMMAND.items():
        assert f"\nGuide: shardctl help {subject}\n" in shardctl(command, "-h").stdout


def test_a_tab_offers_commands_and_subjects(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl help ")
    assert shardctl().stdout.split() == sorted({*COMMANDS, *SUBJECTS})
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl help sn")
    assert shardctl().stdout.split() == ["snapshot", "snapshots-in-ci"]
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl help sub")
    assert shardctl().stdout == f"subsplits\t{guide_questions()['subsplits']}\n"
