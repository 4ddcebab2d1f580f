"""A command that takes groups of options shows Typer each of them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
import typer

from shardctl.cli.app import spelled_out
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.shared import whole_number
from shardctl.cli.output import Formats, OutputOptions
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
    assert list(parameters) == [
        "spec", "dataset", "data_dir", "no_cache", "format", "output", "every_row", "color",
    ]  # fmt: skip
    assert parameters["output"].default is None
    assert parameters["every_row"].default is False
    assert run.__doc__ == "Do nothing."


def test_the_command_receives_the_groups_and_the_format_to_write() -> None:
    run = spelled_out(command, FORMATS)
    taken.clear()
    source: dict[str, Any] = {"dataset": ["d"], "data_dir": None, "no_cache": True}
    run(spec="s", **source, format=None, output="o", every_row=True, color=None)
    assert taken == [
        (
            "s",
            DatasetOptions(dataset=["d"], no_cache=True),
            OutputOptions(format="yaml", output="o"),
            True,
        )
    ]


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("1_000", 1000), (" 7 ", 7), ("-1", -1)])
def test_a_whole_number(text: str, number: int) -> None:
    assert whole_number()(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3", "0x10", "1__0"])
def test_what_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^a whole number is needed$"):
        whole_number()(text)


@pytest.mark.parametrize(
    ("minimum", "maximum", "taken", "refused", "rule"),
    [
        (1, None, (1, 2**70), (0, -1), "a whole number, at least 1, is needed"),
        (0, 9, (0, 9), (-1, 10), "a whole number from 0 to 9 is needed"),
    ],
)
def test_bounds_are_taken_and_what_lies_beyond_is_not(
    minimum: int, maximum: int | None, taken: list[int], refused: list[int], rule: str
) -> None:
    parse = whole_number(minimum, maximum)
    assert [parse(number) for number in taken] == list(taken)
    for number in refused:
        with pytest.raises(UsageError, match=f"^{rule}$"):
            parse(str(number))
