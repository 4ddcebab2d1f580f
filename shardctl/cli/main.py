"""The `shardctl` command: finds the command that is meant, runs it, and ends with its exit code.

Typer and the commands are imported where an interrupt or an error in them is caught, and before
that next to nothing is: an interrupt that comes earlier is answered by Python, with a traceback.
"""

from __future__ import annotations

# `signal` without its enums, which take longer to load than all else here.
import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

# The order is that of the help page.
COMMANDS = (
    *("layout", "plan", "simulate", "locate", "resume", "audit", "rehearse", "hosts", "eval"),
    *("quality", "report", "lint", "snapshot", "diff", "verify", "index", "inspect", "list"),
    *("init", "config"),
    *("demo", "completion", "help"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (0 done, 1 found something, 2 bad input)."""
    _INTERRUPTS.begin(ends=arguments is None)
    try:
        from contextvars import copy_context

        words = list(sys.argv[1:] if arguments is None else arguments)
        # What a command sets in its context, as where datasets are looked up and colours, ends
        # with it.
        code = copy_context().run(_code_of, words, ends=arguments is None)
        _end_with(code)
    finally:
        if arguments is not None:  # called from Python, which runs on afterwards
            _INTERRUPTS.end()


def _code_of(arguments: list[str], *, ends: bool) -> int:
    try:
        _open_closed_streams()
        from shardctl.cli.output import choose

        choose(arguments)
        return _run(arguments)
    # The order matters: an interrupt may arrive wrapped in another error, see `_is_an_interrupt`.
    except KeyboardInterrupt:
        return _interrupted(ends=ends)
    except BrokenPipeError:
        return 0  # the reader of a pipe left; it has what it wanted
    except Exception as error:
        if _INTERRUPTS.came or _is_an_interrupt(error):
            return _interrupted(ends=ends)
        from shardctl.cli.failures import report

        return report(error, arguments, COMMANDS)


def _interrupted(*, ends: bool) -> int:
    """Return the code of an interrupt, or end the process with it while TensorFlow reads.

    It would wait for what its threads have in hand, and take itself apart: seconds, of which
    nothing comes. Files and bars have been cleaned up by now.
    """
    if ends and "tensorflow" in sys.modules:
        os._exit(130)
    # CPython notes an interrupt in code that is compiled from text, as in `namedtuple`, as one that
    # nothing caught, and `python -m` then ends with the signal: running other text clears the note.
    eval("0")  # noqa: S307  # a text of our own
    return 130


def _run(arguments: list[str]) -> int:
    instruction = os.environ.get("_SHARDCTL_COMPLETE")
    if instruction:
        from shardctl.cli.completion import answer_shell
        from shardctl.cli.output import write

        _INTERRUPTS.go_on()
        write([answer_shell(instruction, os.environ, _app)], None)
        return 0
    from typer import Exit

    # Up to here an interrupt waits; importing and describing commands cannot be ended in silence.
    # Not Typer's own call, which would end a closed pipe with 1 and install a hook for tracebacks.
    command = _app(arguments)
    _INTERRUPTS.go_on()
    try:
        words = arguments or ["--help"]  # Typer takes from the list that it is given
        with command.make_context("shardctl", [*words], obj=tuple(arguments)) as ctx:
            command.invoke(ctx)
    except Exit as found:
        return found.exit_code
    return 0


class _Interrupts:
    """What SIGINT does: it ends the command in silence, and a second one the process at once.

    The first waits while modules load before there is a command; Python cannot end the loading of
    a module in silence. Nothing is changed where SIGINT is ignored or handled by other code.
    """

    came = False
    _ends = False  # the process, with the command
    _wait = True
    _is_ours = False

    def begin(self, *, ends: bool) -> None:
        self.came, self._wait, self._ends = False, True, ends
        self._is_ours = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
        self._set(self._interrupt)

    def go_on(self) -> None:
        """End the command where an interrupt waits, and from now on when one comes."""
        self._wait = False
        if self.came:
            raise KeyboardInterrupt

    def end(self) -> None:
        self._set(_signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        # A second SIGINT ends the process at once.
        self._set(_signal.SIG_DFL)
        if self._ends and _tensorflow_loads():
            os._exit(130)  # an error within its native modules may end the process with a signal
        if not self._wait:
            raise KeyboardInterrupt

    def _set(self, handler: Any) -> None:
        try:
            if self._is_ours:
                _signal.signal(_signal.SIGINT, handler)
        except ValueError:  # not in the main thread, where no signal arrives
            self._is_ours = False


_INTERRUPTS = _Interrupts()


def _open_closed_streams() -> None:
    """Give stdin, stdout and stderr that are closed a place that takes nothing.

    Else a file that is opened next gets its number, and what libraries say lands in that file.
    Python has None for the stream as before.
    """
    for number in range(3):
        try:
            os.fstat(number)
        # Closed descriptors are opened in ascending order, so each gets its own number.
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least number that is free


def _tensorflow_loads() -> bool:
    spec = getattr(sys.modules.get("tensorflow"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))  # as importlib itself asks


def _is_an_interrupt(error: BaseException | None) -> bool:
    """Return whether an interrupt caused an error, as it does in the body of a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _app(arguments: Sequence[str]) -> Any:
    """Return the application with the command that is meant, or with all if that is unclear.

    Importing and describing every command takes longer than most commands themselves.
    """
    from shardctl.cli.app import application

    # One command, where the first word names it; otherwise all, for the list or the error.
    return application(*(arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS))


def _end_with(code: int) -> None:
    """Exit without the traceback that a closed stdout causes when Python flushes it at the end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        # Python flushes stdout once more at exit; the descriptor now leads nowhere, so that
        # succeeds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
