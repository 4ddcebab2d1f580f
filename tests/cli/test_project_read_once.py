"""A command opens shardctl.yaml once, and not at all where nothing of it matters."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardctl.cli.main import COMMANDS
from tests.cli.conftest import Shardctl

LAYOUT = """\
name: toy
splits:
  train: {shard_lengths: [3, 4], filenames: [a, b]}
"""
PROJECT = "dataset: toy.yaml\nread: {cycle: 2, file_order: order.txt}\nlint: {hosts: 2}\n"

_watching: list[list[str]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        for opened in _watching:
            opened.append(os.path.basename(os.fspath(arguments[0])))


sys.addaudithook(_note)  # sees every way of opening a file; no hook can be taken away again


@contextlib.contextmanager
def opened_files() -> Iterator[list[str]]:
    """The names of the files that are opened inside."""
    opened: list[str] = []
    _watching.append(opened)
    try:
        yield opened
    finally:
        _watching.remove(opened)


Count = Callable[..., int]


@pytest.fixture
def opens(shardctl: Shardctl) -> Count:
    """A function that returns how often a command opens shardctl.yaml, in a project."""
    Path("toy.yaml").write_text(LAYOUT)
    Path("order.txt").write_text("b\na\n")
    assert shardctl("snapshot", "-d", "toy.yaml", "-o", "pinned.yaml").exit_code == 0
    made = shardctl("resume", "-d", "toy.yaml", "--consumed", 2, "-o", "made.yaml")
    assert made.exit_code == 0
    Path("shardctl.yaml").write_text(PROJECT)

    def count(*arguments: object) -> int:
        with opened_files() as opened:
            ran = shardctl(*arguments)
        assert "error: " not in ran.stderr
        return opened.count("shardctl.yaml")

    return count


_ENOUGH: dict[str, tuple[object, ...]] = {
    "plan": ("train",),
    "locate": ("--id", 1),
    "resume": ("--consumed", 2),
    "hosts": ("--hosts", 2),
    "eval": ("train", "--batch", 2),
    "diff": ("pinned.yaml",),
}


_OTHERS = ("verify", "inspect", "index", "init", "help")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in _OTHERS])
def test_a_command_opens_it_once(command: str, opens: Count) -> None:
    assert opens(command, *_ENOUGH.get(command, ()), "-f", "json") == 1


def test_verify_opens_it_once(opens: Count) -> None:
    pytest.importorskip("tensorflow")
    assert opens("verify", "--take", 2) == 1


def test_a_plan_is_checked_with_it_read_once(opens: Count) -> None:
    assert opens("resume", "--plan", "made.yaml", "-d", "toy.yaml") == 1


def test_findings_are_pointed_at_from_what_was_read(opens: Count) -> None:
    assert opens("lint", "--epochs", 2, "-f", "github") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("lint", "--list"),
        ("lint", "--explain", "SC001"),
        ("diff", "pinned.yaml", "pinned.yaml"),
        ("list", "--data-dir", "."),
        ("plan", "-h"),
        ("init", "-o", "-"),
        ("help", "plan"),
    ],
)
def test_where_nothing_of_it_matters_it_is_not_opened(
    arguments: tuple[str, ...], opens: Count
) -> None:
    assert opens(*arguments) == 0
