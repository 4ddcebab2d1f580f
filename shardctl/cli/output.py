"""The one place that writes: data to stdout or to a file, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TextIO

from shardctl.base.progress import WATCHING
from shardctl.base.text import inert, printable, quoted, utf8, without_secrets
from shardctl.draw.tables import Screen, styled
from shardctl.errors import ShardctlError, UsageError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_PATIENCE = 0.5  # seconds after which work gets a bar
_UNSEEN = 0.02  # seconds for which what is written may wait for more
_NARROWEST_PICTURE = 40  # columns of a terminal, below which a picture shows nothing


def screen(output: str | None, *, picture: bool | None = False) -> Screen:
    """Return what the place the answer goes to can show: a terminal's width, colour, pictures.

    A terminal shows the first and last rows of a long table, a pipe and a file all of them; a file
    never has colour. Where `picture` is None, a terminal that can show them gets pictures: not one
    that is dumb, as those of screen readers are, and none whose text is not Unicode.
    """
    if output not in (None, "-") or sys.stdout is None:
        return Screen(pictures=picture is True)
    if not sys.stdout.isatty():
        return Screen(color=is_colored(sys.stdout), pictures=picture is True)
    import shutil  # 3 ms

    width = max(shutil.get_terminal_size().columns, 20)
    if picture is None:
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        picture = unicode and width >= _NARROWEST_PICTURE and os.environ.get("TERM") != "dumb"
    return Screen(width=width, color=is_colored(sys.stdout), abridged=True, pictures=picture)


Chunk = str | bytes | bytearray | memoryview


def write(chunks: Iterable[Chunk], output: str | None) -> None:
    """Write the chunks to a file, whole or not at all, or to stdout, which `-` names too.

    A reader of stdout that leaves (`| head`) has what it wanted: the rest is not made, and the
    command goes on to its exit code, which tells a check's result whoever reads its words.

    Raises:
        UsageError: the file cannot be written; what was there before is untouched.
    """
    if output in (None, "-"):
        _to_stdout(chunks)
        return
    from shardctl.files.atomic import new_file  # 2 ms

    with new_file(output) as file:
        for chunk in chunks:
            file.write(utf8(chunk) if isinstance(chunk, str) else chunk)


def _to_stdout(chunks: Iterable[Chunk]) -> None:
    if sys.stdout is None:
        raise UsageError("cannot write to stdout: it is closed; name a file with --output")
    stdout, flushed, waiting = sys.stdout.buffer, time.monotonic(), iter(chunks)
    is_open = True
    while is_open:
        chunk = next(waiting, None)
        is_open = chunk is not None
        try:
            if chunk is not None:
                stdout.write(utf8(chunk) if isinstance(chunk, str) else chunk)
            if not is_open or time.monotonic() - flushed > _UNSEEN:
                stdout.flush()
                flushed = time.monotonic()
        except BrokenPipeError:
            # What is still in the buffer, and what Python flushes at the end, goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        except OSError as error:
            raise UsageError(f"cannot write to stdout: {error.strerror or error}") from None


def exact_lines(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield lines for stdout as they are; one that a CI runner would read as a command is refused.

    Raises:
        UsageError: there is such a line; a file may hold it.
    """
    for chunk in chunks:
        # A search of bytes is cheap where there are millions of lines.
        acts = isinstance(chunk, str) or b"::" in chunk or b"##" in chunk
        text = ""
        if acts:
            text = chunk if isinstance(chunk, str) else bytes(chunk).decode()
        if inert(text) != text:
            line = next(line for line in text.splitlines() if inert(line) != line)
            raise UsageError(
                f"line {quoted(line)} is a command to runners of CI, which read what programs "
                "print; write it to a file with --output, or choose --format jsonl"
            )
        yield chunk


def warn(messages: Iterable[str]) -> None:
    """Say each thing that surprises, once, on stderr."""
    for message in dict.fromkeys(messages):
        say(message, kind="warning")


def say(line: str, *, kind: Literal["error", "warning"] | None = None) -> None:
    """Write one line to stderr, silently dropped where nobody can read it.

    What kind of line it is stands before it, as in `error: ..`, and that word is coloured.
    """
    lead = "" if kind is None else f"{kind}:"
    line = inert(printable(without_secrets(f"{lead} {line}" if lead else line), 2000))
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "ascii"
            line = line.encode(encoding, "backslashreplace").decode(encoding)
            if kind is not None and is_colored(sys.stderr):
                line = styled(lead, kind) + line.removeprefix(lead)
            print(line, file=sys.stderr, flush=True)  # noqa: T201  # the one place that prints


def fail(error: ShardctlError | str) -> None:
    """Write the one line that every failure gets."""
    say(" ".join(str(error).split()), kind="error")


class ProgressBars:
    """Bars on stderr for work that reports how far it is; gone when the work is done.

    None are shown where stderr is not a terminal, or for work of less than half a second.
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._start = time.monotonic()

    def __enter__(self) -> ProgressBars:
        self._before = WATCHING.set(self.show)
        return self

    def __exit__(self, *failure: object) -> None:
        WATCHING.reset(self._before)
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._tasks.clear()

    def show(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` of something are done; one bar for each thing counted.

        A total of 0 is one that nobody knows yet: how much is done is shown alone, until something
        else is counted.
        """
        if not self._on_terminal or time.monotonic() - self._start < _PATIENCE:
            return
        if done >= total > 0 and what not in self._tasks:
            return  # what ends before it has a bar needs none
        label = what if total else f"{what}: {done:,}"
        if self._progress is None:
            from rich.console import Console
            from rich.progress import Progress

            console = Console(stderr=True, no_color=not is_colored(sys.stderr))
            self._progress = Progress(console=console, transient=True)
            self._progress.start()
        if what not in self._tasks:
            endless = {task.id for task in self._progress.tasks if task.total is None}
            for other in [name for name, task in self._tasks.items() if task in endless]:
                self._progress.remove_task(self._tasks.pop(other))
            self._tasks[what] = self._progress.add_task(label, total=total or None)
        task = self._tasks[what]
        self._progress.update(task, completed=done, total=total or None, description=label)
        if self._progress.finished:  # the bars make room for what is written next
            self.__exit__()


# Whether what is written is coloured: decided here and nowhere else, for stdout and stderr each.
#
# The first of these that says something decides, as it does in Rich, CMake and ripgrep:
# `--color always|never`; `NO_COLOR` (https://no-color.org), which is set and not empty: none;
# `FORCE_COLOR` (https://force-color.org) or `CLICOLOR_FORCE`, set and neither empty nor 0: colour,
# also where TERM is dumb, as it is on CI; TERM=dumb: none; else colour on a terminal.

OPTION = "--color"
CHOICES = ("auto", "always", "never")
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")


class _Choice:
    """What `--color` says; kept from the first word on, since errors come before options."""

    when = "auto"


_CHOICE = _Choice()


def choose(arguments: Sequence[str]) -> None:
    """Keep what `--color` says among arguments, the last one where there are several."""
    _CHOICE.when = "auto"
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        said = value if equals else following
        if option == OPTION and said in CHOICES:  # any other is refused with all other options
            _CHOICE.when = said


def before_command(arguments: Sequence[str]) -> int:
    """Return how many words at the start are `--color` and its value.

    >>> before_command(["--color", "never", "--color=auto", "plan"]), before_command(["--color"])
    (3, 1)
    """
    count = 0
    while count < len(arguments) and arguments[count].partition("=")[0] == OPTION:
        count += 1 if "=" in arguments[count] else 2
    return min(count, len(arguments))


def behind_command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a `--color` that stands before the command behind it.

    Without a command they ask for the help page, as no arguments do.

    >>> behind_command(["--color", "never", "plan", "train"])
    ['plan', '--color', 'never', 'train']
    """
    count = before_command(arguments)
    if count == len(arguments):
        has_value = count and arguments[-1] != OPTION
        return [*arguments, "--help"] if has_value else list(arguments)
    if arguments[count].startswith("-"):
        return list(arguments)
    return [arguments[count], *arguments[:count], *arguments[count + 1 :]]


def is_colored(stream: TextIO | None) -> bool:
    """Return whether text for a stream is coloured; None is a stream that is closed."""
    if stream is None or _CHOICE.when == "never":
        return False
    if _CHOICE.when == "always":
        return True
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0") for name in _FORCING):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()
