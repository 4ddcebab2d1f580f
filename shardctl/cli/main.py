"""The `shardctl` command: finds the command that is meant, runs it, and ends well in any case.

Typer and the commands are imported where an interrupt or an error in them is caught.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
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
        if _is_an_interrupt(error):
            code = 130
        else:
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
    with _interrupts_wait():
        import typer

        # Not `app()`, which would end a closed pipe with 1 and install a hook for tracebacks.
        command = typer.main.get_command(_app(arguments))
    try:
        with command.make_context("shardctl", arguments or ["--help"], obj=tuple(arguments)) as ctx:
            command.invoke(ctx)
    except typer.Exit as found:
        return found.exit_code
    return 0


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let an interrupt wait while modules load; Python cannot end that in silence."""
    came: list[int] = []
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, or handled by other code
        return
    try:
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    except ValueError:  # not in the main thread, where no signal arrives
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


def _is_an_interrupt(error: BaseException | None) -> bool:
    """Return whether an interrupt caused an error, as it does in the body of a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


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
