"""Help pages: every option of every command is in a panel; the command's own come first."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer

from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.cli.output import DATASET, HOSTS, OPTION_PANELS, ORDER, OUTPUT, THIS_COMMAND
from shardctl.settings.table import SETTINGS


def page_of(group: Any, name: str) -> str:
    command = group.commands[name]
    root = group.make_context("shardctl", [], resilient_parsing=True)
    return str(command.get_help(typer.Context(command, info_name=name, parent=root)))


def options_in(page: str) -> dict[str, list[str]]:
    """Return the long options of each panel."""
    panels = re.split(r"^(\S.*):\n(?=  )", page, flags=re.MULTILINE)
    return {
        title: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", body, flags=re.MULTILINE)
        for title, body in zip(panels[1::2], panels[2::2], strict=True)
        if title in OPTION_PANELS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_one_panel_and_the_own_panel_is_first(name: str) -> None:
    group = application(*COMMANDS)
    panels = options_in(page_of(group, name))
    assert list(panels) == [title for title in OPTION_PANELS if title in panels]
    listed = {option for options in panels.values() for option in options}
    known = {name for param in group.commands[name].params for name in param.opts}
    assert {name for name in known if name.startswith("--")} <= listed
    if "--cycle" in listed:
        for title, about in ((ORDER, "order"), (HOSTS, "hosts")):
            assert panels[title] == [s.option for s in SETTINGS if s.about == about]
    assert "--color" in panels[OUTPUT]
    assert "--help" in panels[OUTPUT]
    assert "--dataset" not in listed or "--dataset" in panels[DATASET]


def test_the_own_panel_holds_what_the_command_is_about() -> None:
    panels = options_in(page_of(application("simulate"), "simulate"))
    assert panels[THIS_COMMAND] == ["--skip", "--take"]


def test_the_page_of_all_commands_lists_each_once() -> None:
    group = application(*COMMANDS)
    page = group.get_help(group.make_context("shardctl", [], resilient_parsing=True))
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_a_page_ends_with_examples_aliases_and_the_guide() -> None:
    page = page_of(application("simulate"), "simulate")
    examples, aliases, guide = map(page.index, ("Examples:\n  # ", "Names in par", "Guide: sh"))
    assert examples < aliases < guide
    assert page.endswith("shardctl help orders")
    assert "\x1b" not in page
