"""Messages name options as a command takes them, and what is filled in is left as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardctl
from shardctl.base.phrase import option, phrase
from shardctl.base.text import quoted
from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.errors import UsageError
from shardctl.spec.host import Host


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (phrase("{cycle=auto} needs {cpus=N}"), "--cycle auto needs --cpus N"),
        (phrase("{shuffle_files=True}, {reshuffle=False}"), "--shuffle-files, --no-reshuffle"),
        (phrase("{buffer=-2}, {pass_index=}", pass_index=1), "--buffer -2, --pass 1"),
        (phrase("{remainder=pad}, {take=all}, {take=5}"), "--pad, --take -1, --take 5"),
        (phrase("{seen=CODES} or {seen}"), "--seen FILE or --seen"),
        (phrase("{host=}", host=Host(index=1, count=8)), "--host 1/8"),
        (phrase("{skip=} of {:,}", 12345, skip=7), "--skip 7 of 12,345"),
        (phrase("{consumed!}", consumed=-1), "--consumed '-1'"),
        (phrase("{mode!}", mode="\x1b[2J"), r"--mode '\x1b[2J'"),
        (phrase("host {}: {}", 1, UsageError("--steps 3")), "host 1: --steps 3"),
        (phrase("{code!} {hosts=}", code="x", hosts=3), "--explain 'x' --hosts 3"),
        (option("cycle", 10**30, given=True), f"--cycle {quoted(10**30, 24)}"),
        (option("\x1b[2J"), r"--\x1b[2J"),
    ],
)
def test_options_as_a_command_takes_them(text: str, expected: str) -> None:
    assert text == expected


@given(st.text(), st.text(alphabet="{}cyle=!: "))
def test_what_is_filled_in_is_never_a_marker(one: str, other: str) -> None:
    assert phrase("{} and {cycle}, {}", one, other) == f"{one} and --cycle, {other}"


@pytest.mark.long
def test_every_option_that_a_text_of_ours_names_is_one() -> None:
    group = application(*COMMANDS)
    there = {
        name
        for command in group.commands.values()
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    package = Path(shardctl.__file__).parent
    named = {
        found
        for room in ("base", "dataset", "loaders", "order", "settings", "spec", "stages", "verbs")
        for path in (package / room).rglob("*.py")
        for found in re.findall(r"(?<=[\s\"`])--[a-z][a-z-]+\b", path.read_text("utf-8"))
    }
    assert named - there <= {"--help", "--no", "--drop"}  # two are beginnings
