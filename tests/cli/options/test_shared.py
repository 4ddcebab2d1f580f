"""A command that takes groups of options shows Typer each of them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
import typer

from shardctl.cli.formats import Formats, OutputOptions
from shardctl.cli.options.shared import DatasetOptions, spelled_out
from shardctl.errors import UsageError

FORMATS = Formats(renderers={"yaml": lambda *_: [], "json": lambda *_: []})
taken: list[Any] = []


def command(
    spec: Annotated[str, typer.Argument()],
    source: DatasetOptions,
    out: OutputOptions,
    every_row: Annotated[bool, typer.Option("--all")] = False,
) -> None:
    """Do nothing."""
    taken.append((spec, source, out, every_row))


def test_groups_are_replaced_by_their_options_in_their_places() -> None:
    run = spelled_out(command, FORMATS)
    parameters = inspect.signature(run).parameters
    assert list(parameters) == ["spec", "dataset", "data_dir", "format", "output", "every_row"]
    assert parameters["output"].default is None
    assert parameters["every_row"].default is False
    assert run.__doc__ == "Do nothing."


def test_the_command_receives_the_groups_and_the_format_to_write() -> None:
    run = spelled_out(command, FORMATS)
    taken.clear()
    run(spec="s", dataset=["d"], data_dir=None, format=None, output="o", every_row=True)
    assert taken == [
        ("s", DatasetOptions(dataset=["d"]), OutputOptions(format="yaml", output="o"), True)
    ]


def test_a_format_that_the_command_lacks_is_refused_before_it_begins() -> None:
    run = spelled_out(command, FORMATS)
    taken.clear()
    with pytest.raises(UsageError, match="no format 'csv' here; choose from yaml, json"):
        run(spec="s", dataset=None, data_dir=None, format="csv", output=None, every_row=False)
    assert taken == []


def test_the_option_has_the_help_of_the_formats() -> None:
    annotation = spelled_out(command, FORMATS).__annotations__["format"]
    (option,) = annotation.__metadata__
    assert option.help == "yaml, or json for programs.  [default: yaml]"
    assert option.autocompletion("j") == ["json"]
