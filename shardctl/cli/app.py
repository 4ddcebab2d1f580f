"""The commands as one Typer application."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable

import typer

import shardctl
from shardctl.cli.formats import Formats
from shardctl.cli.options.shared import spelled_out

_HELP = (
    "Which examples of a TensorFlow dataset are read, from which files, in which order, on which "
    "host: answered from metadata alone."
)
_EPILOG = (
    "Quote specs: 'train[40:]' holds characters that shells read. "
    "Exit codes: 0 done, 1 a check found something, 2 bad input."
)


def application(names: Iterable[str]) -> typer.Typer:
    """Return the application with some of its commands, each a function named like its module."""
    app = typer.Typer(
        name="shardctl",
        help=_HELP,
        epilog=_EPILOG,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for name in names:
        module = importlib.import_module(f"shardctl.cli.commands.{name}")
        command = getattr(module, name)
        formats: Formats = module.FORMATS
        page = (inspect.getdoc(command) or "").replace("{formats}", ", ".join(formats.names))
        summary = " ".join(page.partition("\n\n")[0].split())
        app.command(name, help=page, short_help=summary)(spelled_out(command, formats))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardctl {shardctl.__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False,
        "--version",
        "-V",
        help="Show the version and exit.",
        callback=_show_version,
        is_eager=True,
    ),
) -> None:
    pass
