"""Arguments as options: every name and value that our texts use is an option of a command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.core.hosts.host import Host
from shardctl.core.phrase import Argument, Phrase, named_arguments, phrase
from shardctl.core.text import quoted
from shardctl.rendering.text.command_line import as_options, option_name
from tests.core.phrase_calls import PACKAGE, calls_of_phrase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (phrase("{cycle=auto} needs {cpus=N}"), "--cycle auto needs --cpus N"),
        (phrase("{shuffle_files=True}, {reshuffle=False}"), "--shuffle-files, --no-reshuffle"),
        (phrase("{buffer=-2}, {pass_index=}", pass_index=1), "--buffer -2, --pass 1"),
        (phrase("{remainder=pad}, {take=all}, {take=5}"), "--pad, --take -1, --take 5"),
        (phrase("{seen=CODES} or {seen}"), "--seen FILE or --seen"),
        (phrase("{evaluated=[SPEC]}, {ignore=[SC01,SC2]}"), "--eval SPEC, --ignore SC01,SC2"),
        (phrase("{host=}", host=Host(index=1, count=8)), "--host 1/8"),
        (phrase("{consumed!}", consumed=-1), "--consumed '-1'"),
        (phrase("{mode!}", mode="\x1b[2J"), r"--mode '\x1b[2J'"),
        (phrase("{code!} {hosts=}", code="x", hosts=3), "--explain 'x' --hosts 3"),
    ],
)
def test_options_as_a_command_takes_them(text: Phrase, expected: str) -> None:
    assert as_options(text) == expected


def test_a_long_value_is_cut() -> None:
    assert as_options(phrase("{cycle!}", cycle=10**30)) == f"--cycle {quoted(10**30, 24)}"


def options() -> set[str]:
    """Return every option of every command."""
    group = application(*COMMANDS)
    return {
        name
        for command in group.commands.values()
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


def arguments_in_templates() -> Iterator[str]:
    stories = PACKAGE / "planning" / "lint" / "stories.md"
    templates = [stories.read_text("utf-8")]
    for _, call in calls_of_phrase():
        if isinstance(call.args[0], ast.Constant):
            templates.append(str(call.args[0].value))
    for template in templates:
        yield from re.findall(r"\{([a-z_]+)(?:!|=[^{}]*)?\}", template)


@pytest.mark.long
def test_every_argument_that_a_text_names_is_an_option() -> None:
    there = options()
    names = set(arguments_in_templates()) - {"remainder"}  # --pad and --drop-remainder
    names -= {"batches", "seed", "worker_buffer_size"}  # of shardctl.grain and shardctl.torch
    assert len(names) > 30
    assert {name for name in names if option_name(name) not in there} == set()


def test_names_of_settings_win() -> None:
    assert as_options(Argument("pass_index")) == "--pass"
    assert named_arguments(phrase("{pass_index}"))[0].name == "pass_index"
