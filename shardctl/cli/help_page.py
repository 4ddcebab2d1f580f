"""From a command, as Typer knows it, to its help page on the screen there is."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from shardctl.cli.output import screen
from shardctl.cli.panels import (
    COMMAND_PANELS,
    OPTION_PANELS,
    ORDER,
    OUTPUT,
    THIS_COMMAND,
    command_panel,
)
from shardctl.guide.guides import GUIDE_OF_COMMAND
from shardctl.rendering.help_page import Entry, HelpPage, Panel, Paper, help_text
from shardctl.rendering.text.tables import Screen

_ALIASES = (
    "Names in parentheses are those of TFDS and tf.data. Where a name is that of one option, it is "
    "understood too: --interleave_cycle_length 8 is --cycle 8. In options - and _ are the same."
)


def help_on_screen(command: Any, ctx: Any) -> str:
    """Return the help page of a command, or of all commands, for the screen that stdout is."""
    shown = screen(None)
    ctx.color = shown.color or None  # else Typer takes the colour away
    return help_text(help_page(command, ctx), paper_of(shown)).rstrip("\n")


def paper_of(shown: Screen) -> Paper:
    """Return what a help page is written on, where the answer goes to this screen."""
    width = shown.width or shutil.get_terminal_size().columns
    boxes = shown.width is not None and os.environ.get("TERM") != "dumb" and _has_boxes()
    return Paper(width=max(width, 20), color=shown.color, boxes=boxes)


def _has_boxes() -> bool:
    try:
        "╭─│".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def help_page(command: Any, ctx: Any) -> HelpPage:
    """Return what the help page of a command says, or that of all commands."""
    text = inspect.cleandoc(command.help or "")
    panels = tuple(_panels(command, ctx))
    closing = [command.epilog] if command.epilog else []
    if any(panel.title == ORDER for panel in panels):
        closing.append(_ALIASES)
    if command.name in GUIDE_OF_COMMAND:
        closing.append(f"Guide: shardctl help {GUIDE_OF_COMMAND[command.name]}")
    return HelpPage(
        usage=" ".join([ctx.command_path, *_usage(command, ctx)]),
        paragraphs=tuple(filter(None, map(str.strip, text.split("\n\n")))),
        panels=panels,
        examples=getattr(command, "examples", ()),
        closing=tuple(closing),
    )


def _usage(command: Any, ctx: Any) -> Iterator[str]:
    for piece in command.collect_usage_pieces(ctx):
        # To Typer what is needed stands in braces.
        yield piece[1:-1] if piece.startswith("{") and piece.endswith("}") else piece


def _panels(command: Any, ctx: Any) -> Iterator[Panel]:
    """Yield the panels that have entries: arguments, then options, then commands."""
    arguments: list[Entry] = []
    options: dict[str, list[Entry]] = {title: [] for title in OPTION_PANELS}
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "argument":
            arguments.append(_argument(parameter, ctx))
        elif not parameter.hidden:
            own = parameter.rich_help_panel or THIS_COMMAND
            title = OUTPUT if parameter.name == "help" and options[OUTPUT] else own
            options.setdefault(title, []).append(_option(parameter, ctx))
    yield from _with_entries("Arguments", arguments)
    if not hasattr(command, "commands"):
        for title, entries in options.items():
            yield from _with_entries(title, entries)
        return
    commands: dict[str, list[Entry]] = {title: [] for title in COMMAND_PANELS}
    for name, one in command.commands.items():
        entry = Entry(names=(name,), meaning=one.get_short_help_str())
        commands[command_panel(name)].append(entry)
    for title, entries in commands.items():
        yield from _with_entries(title, entries)
    yield from _with_entries("Options", [entry for some in options.values() for entry in some])


def _with_entries(title: str, entries: Iterable[Entry]) -> Iterator[Panel]:
    kept = tuple(entries)
    if kept:
        yield Panel(title=title, entries=kept)


def _argument(parameter: Any, ctx: Any) -> Entry:
    return Entry(names=(parameter.make_metavar(ctx),), meaning=_meaning(parameter, ctx))


def _option(parameter: Any, ctx: Any) -> Entry:
    """Return an option, with the name that switches it off on a line of its own."""
    metavar = "" if parameter.is_flag else f" {parameter.make_metavar(ctx)}"
    on = ", ".join(sorted(parameter.opts, key=len)) + metavar
    off = ", ".join(sorted(parameter.secondary_opts, key=len))
    return Entry(names=(on, off) if off else (on,), meaning=_meaning(parameter, ctx))


def _meaning(parameter: Any, ctx: Any) -> str:
    record = parameter.get_help_record(ctx)
    return "" if record is None else str(record[1])
