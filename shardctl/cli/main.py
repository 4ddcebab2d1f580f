"""The `shardctl` command: finds the command that is meant, runs it, and ends well in any case.

Typer and the commands are imported where an interrupt or an error in them is caught.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

# The order is that of the help page.
COMMANDS = (
    "layout",
    "plan",
    "simulate",
    "locate",
    "resume",
    "hosts",
    "eval",
    "quality",
    "lint",
    "snapshot",
    "diff",
    "verify",
    "list",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (0 done, 1 found something, 2 bad input)."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 0  # the reader of a pipe left; it has what it wanted
    except Exception as error:
        from shardctl.cli.failures import report

        code = report(error, arguments, COMMANDS)
    _leave(code)


def _run(arguments: list[str]) -> int:
    instruction = os.environ.get("_SHARDCTL_COMPLETE")
    if instruction:
        from shardctl.cli.completion.shell import answer_shell
        from shardctl.cli.output import write

        write([answer_shell(instruction, os.environ, _app)], None)
        return 0
    import typer

    # Not `app()`, which would end a closed pipe with 1 and install a hook for tracebacks.
    command = typer.main.get_command(_app(arguments))
    try:
        with command.make_context("shardctl", arguments or ["--help"], obj=tuple(arguments)) as ctx:
            command.invoke(ctx)
    except typer.Exit as found:
        return found.exit_code
    return 0


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the command that is meant, or with all where that is open.

    Importing and describing every command takes longer than most commands themselves.
    """
    from shardctl.cli.app import application

    return application(arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS)


def _leave(code: int) -> None:
    """Exit without the traceback that a closed stdout causes when Python flushes it at the end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
