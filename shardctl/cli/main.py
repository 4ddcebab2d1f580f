"""The `shardctl` command: finds the command that is meant, runs it, and ends well in any case."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import TyperException

import shardctl
from shardctl.cli.options import spelled_out
from shardctl.cli.output import fail, write
from shardctl.core.quoting import choices, quoted
from shardctl.errors import ShardctlError

# The order is that of the help page. A command is a function named like its module.
COMMANDS = (
    "layout",
    "plan",
    "simulate",
    "locate",
    "resume",
    "hosts",
    "eval",
    "snapshot",
    "diff",
    "list",
)

_HELP = (
    "Which examples of a TensorFlow dataset are read, from which files, in which order, on which "
    "host: answered from metadata alone."
)
_EPILOG = (
    "Quote specs: 'train[40:]' holds characters that shells read. "
    "Exit codes: 0 done, 1 a check found something, 2 bad input."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (0 done, 1 found something, 2 bad input)."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(_run(arguments))
    except ShardctlError as error:
        fail(error)
        code = error.exit_code
    except TyperException as error:
        fail(_with_commands(error.format_message(), arguments))
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 0  # the reader of a pipe left; it has what it wanted
    except MemoryError:
        fail("out of memory; ask for less, or write to a file with --output")
        code = 2
    except RecursionError:
        fail("the input is nested too deeply")
        code = 2
    except OSError as error:
        fail(f"{error.strerror or error}: {quoted(error.filename or 'stdout')}")
        code = 2
    _leave(code)


def _run(arguments: list[str]) -> int:
    instruction = os.environ.get("_SHARDCTL_COMPLETE")
    if instruction:
        from shardctl.cli.shell_completion import answer_shell

        write([answer_shell(instruction, os.environ, _app)], None)
        return 0
    app = _app(arguments)
    result = app(
        args=arguments or ["--help"],
        prog_name="shardctl",
        standalone_mode=False,
        obj=tuple(arguments),
    )
    return result if isinstance(result, int) else 0


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the command that is meant, or with all where that is open.

    Importing and describing every command takes longer than most commands themselves.
    """
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
    meant = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name in COMMANDS if meant is None else (meant,):
        app.command(name)(spelled_out(_command(name)))
    return app


def _command(name: str) -> Callable[..., None]:
    module = importlib.import_module(f"shardctl.cli.{name}")
    command: Callable[..., None] = getattr(module, name)
    return command


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardctl {shardctl.__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        callback=_show_version,
        is_eager=True,
    ),
) -> None:
    pass


def _with_commands(message: str, arguments: Sequence[str]) -> str:
    if message.startswith("No such command"):
        return f"no command {quoted(arguments[0])}; choose from {choices(COMMANDS, 20)}"
    return message


def _leave(code: int) -> None:
    """Exit without the traceback that a closed stdout causes when Python flushes it at the end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
