"""Answers and where they go: formats and their renderers, stdout or a file, stderr, colour, bars.

This is the one place that writes. A command declares its formats once: what `--format` takes, its
help, what a shell offers and the writing come from that. A renderer is named and not imported,
since a help page or a completion has no answer to render.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TextIO

import typer

from shardctl.base.by_name import named
from shardctl.base.progress import WATCHING
from shardctl.base.text import (
    choices,
    either,
    inert,
    nearest_first,
    printable,
    quoted,
    utf8,
    without_secrets,
)
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
    # Neither a file nor a closed stdout has a width or colour.
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
    # Text is written as it is made, and flushed at most every _UNSEEN seconds.
    stdout, flushed = sys.stdout.buffer, time.monotonic()
    for chunk in chain(chunks, [None]):
        try:
            if chunk is not None:
                stdout.write(utf8(chunk) if isinstance(chunk, str) else chunk)
            if chunk is None or time.monotonic() - flushed > _UNSEEN:
                stdout.flush()
                flushed = time.monotonic()
        except BrokenPipeError:
            # What is still in the buffer, and what Python flushes at the end, goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        except OSError as error:
            raise UsageError(f"cannot write to stdout: {error.strerror or error}") from None


def paged(text: str) -> bool:
    """Show text in the pager of $PAGER, else in less; return False where there is none to use.

    Only where people read and type: stdin and stdout are a terminal, and not a dumb one. less
    shows what fits on the screen without waiting (-F), with its colours (-R), and leaves it there
    (-X); a `LESS` of the user's own decides for itself, as it does with git.
    """
    import shutil
    import signal
    import subprocess

    streams, pager = (sys.stdin, sys.stdout), os.environ.get("PAGER", shutil.which("less") or "")
    is_read = all(one is not None and one.isatty() for one in streams)
    if not is_read or pager.strip() in ("", "cat") or os.environ.get("TERM") == "dumb":
        return False
    # The user's own LESS comes last and wins.
    options = {"LESS": "FRX", **os.environ}
    process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=options)  # noqa: S602
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        process.communicate(utf8(text))
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode != 127  # the shell's, of a program that is not there


def exact_lines(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield lines for stdout as they are; one that a CI runner would read as a command is refused.

    Raises:
        UsageError: there is such a line; a file may hold it.
    """
    for chunk in chunks:
        # A search of bytes is cheap where there are millions of lines.
        plain = not isinstance(chunk, str) and b"::" not in chunk and b"##" not in chunk
        text = "" if plain else chunk if isinstance(chunk, str) else str(chunk, "utf-8")
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
    """Write one line to stderr, silently dropped where no reader is left.

    What kind of line it is stands before it, as in `error: ..`, and that word is coloured.
    """
    lead = "" if kind is None else f"{kind}:"
    # Secrets are removed, control characters made visible, and what CI reads as a command defused.
    limit = 20_000 if line.startswith("  ") else 2000  # a command to paste is there whole
    line = inert(printable(without_secrets(f"{lead} {line}" if lead else line), limit))
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "ascii"
            # A character that stderr cannot encode becomes an escape, instead of an error.
            line = line.encode(encoding, "backslashreplace").decode(encoding)
            if kind is not None and is_colored(sys.stderr):
                line = styled(lead, kind) + line.removeprefix(lead)
            print(line, file=sys.stderr, flush=True)  # noqa: T201  # the one place that prints


def fail(error: ShardctlError | str) -> None:
    """Write the one line that every failure gets."""
    # Blanks in a name stay: a line may show it as it is typed.
    say(" ".join(map(str.strip, str(error).splitlines())), kind="error")


def end_with(problems: Iterable[str]) -> None:
    """Say what a check found; where that is something, the command ends with 1."""
    found = [f"check: {problem}" for problem in problems]
    for line in found:
        say(line)
    if found:
        raise typer.Exit(1)


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
        self._clear()

    def _clear(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._tasks.clear()

    def show(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` of something are done; one bar for each thing counted.

        A total of 0 is one that is not known yet: how much is done is shown alone, until something
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
            # A bar without a total belongs to work whose size was not known; it goes when other
            # work begins.
            endless = {task.id for task in self._progress.tasks if task.total is None}
            for other in [name for name, task in self._tasks.items() if task in endless]:
                self._progress.remove_task(self._tasks.pop(other))
            self._tasks[what] = self._progress.add_task(label, total=total or None)
        task = self._tasks[what]
        self._progress.update(task, completed=done, total=total or None, description=label)
        if self._progress.finished:  # the bars make room for what is written next
            self._clear()


# Whether what is written is coloured: decided here and nowhere else, for stdout and stderr each.
#
# The first of these that says something decides, as it does in Rich, CMake and ripgrep:
# `--color always|never`; `NO_COLOR` (https://no-color.org), which is set and not empty: none;
# `FORCE_COLOR` (https://force-color.org) or `CLICOLOR_FORCE`, set and neither empty nor 0: colour,
# also where TERM is dumb, as it is on CI; TERM=dumb: none; else colour on a terminal.

OPTION = "--color"
CHOICES = ("auto", "always", "never")
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")


# What `--color` says; kept from the first word on, since errors come before options.
_WHEN: ContextVar[str] = ContextVar("when", default="auto")


def choose(arguments: Sequence[str]) -> None:
    """Keep what `--color` says among arguments, the last one where there are several."""
    _WHEN.set("auto")
    # Words after `--` are not options.
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        said = value if equals else following
        if option == OPTION and said in CHOICES:  # any other is refused with all other options
            _WHEN.set(said)


def is_colored(stream: TextIO | None) -> bool:
    """Return whether text for a stream is coloured; None is a stream that is closed."""
    if stream is None or _WHEN.get() == "never":
        return False
    if _WHEN.get() == "always":
        return True
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0") for name in _FORCING):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


# The formats of a command.

# The panels of a help page, in their order; an option given no panel is the command's own.
THIS_COMMAND = "This command"
MORE = "More of this command"
TFDS = "Metadata for TFDS"
ORDER = "Order"
HOSTS = "Hosts"
LOADER = "Other loaders"
DATASET = "Dataset"
OUTPUT = "Output"
OPTION_PANELS = (THIS_COMMAND, MORE, TFDS, ORDER, HOSTS, LOADER, DATASET, OUTPUT)
# Those of a short page, which has fewer.
SHORT_PANELS = {"Arguments": THIS_COMMAND, HOSTS: ORDER, LOADER: ORDER}
SHORT_PANELS |= dict.fromkeys((DATASET, OUTPUT), "Dataset and output")

# Makes an answer text or bytes, for a screen and with what only people, and code, are given.
Renderer = Callable[[tuple[Any, ...], Screen, Mapping[str, Any]], Iterable[Chunk]]

# What an ending promises: the format it asks for, then others that read as such a file.
_ENDINGS = {
    ".json": ("json",),
    ".yaml": ("yaml", "json"),
    ".yml": ("yaml", "json"),
    ".csv": ("csv", "ids", "tfds-ids"),
    ".jsonl": ("jsonl",),
    ".npy": ("npy",),
    ".svg": ("svg",),
    ".html": ("html",),
    ".htm": ("html",),
    ".py": ("python",),
    ".md": ("markdown",),
    ".patch": ("patch",),
    ".diff": ("patch",),
}

# What is of no use on a terminal, in words.
_FOR_FILES = {"npy": "bytes", "html": "a page for browsers"}
_PICTURES = ("svg",)

# What shows on stdout what an order depends on unstated; bare rows have no place for it.
_WITH_HEADING = ("table", "json", "yaml", "python", "html")


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How and where the answer is written; what `format` may be is declared by each command.

    Options:
      --output, -o FILE: Write to a file; its ending chooses the format. The file is replaced as a
        whole, or not at all.
      --json: The same as --format json.
    """

    panel: ClassVar[str] = OUTPUT

    format: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT")] = None
    output: Annotated[str | None, typer.Option("--output", "-o")] = None
    json: Annotated[bool, typer.Option("--json")] = False  # where the command has that format


# Of a command whose tables can be long: a terminal gets the first and last rows, a pipe all.
AllOption = Annotated[bool, typer.Option("--all")]
# Of a command whose tables have pictures: a terminal gets them where they fit.
PictureOption = Annotated[bool | None, typer.Option(...)]


@dataclass(frozen=True, kw_only=True)
class Formats:
    """Formats with their renderers, the default first.

    The ending of the output file chooses where no format is asked for.
    """

    renderers: Mapping[str, Renderer]

    @property
    def names(self) -> tuple[str, ...]:
        """What `--format` takes, the default first."""
        return tuple(self.renderers)

    @property
    def option(self) -> Any:
        """The option `--format` of the command: its default in words, its values for shells."""
        text = f"{either(self.names)} [default: {self.names[0]}]"

        def offered(incomplete: str) -> list[str]:
            return [name for name in self.names if name.startswith(incomplete)]

        option = typer.Option("--format", "-f", metavar="FORMAT", help=text, autocompletion=offered)
        return Annotated[str | None, option]

    def chosen(self, out: OutputOptions, *, picture: bool | None = None) -> str:
        """Return the format to write, where pictures were asked for or not, see `PictureOption`.

        Raises:
            UsageError: the command has no such format, the file's ending promises another, a
                terminal is no place for it, or pictures were asked for in a format without them.
        """
        chosen = self._by_name_or_ending(out)
        if chosen in _FOR_FILES and screen(out.output, picture=False).width is not None:
            raise UsageError(
                f"--format {chosen} writes {_FOR_FILES[chosen]}: name a file with --output FILE"
            )
        if picture and chosen not in ("table", *_PICTURES):
            raise UsageError(
                f"--picture draws in tables, not in {chosen}; leave it out, or choose --format "
                "table or svg"
            )
        return chosen

    def _by_name_or_ending(self, out: OutputOptions) -> str:
        if out.json:
            if out.format not in (None, "json"):
                raise UsageError(f"--json and --format {out.format}: choose one")
            out = replace(out, format="json")
        if out.format is not None and out.format not in self.renderers:
            names = choices(nearest_first(out.format, self.names))
            raise UsageError(f"no format {quoted(out.format)} here; choose from {names}")
        ending = Path(out.output or "").suffix
        promised = _ENDINGS.get(ending.lower())
        if promised is None and ending and out.format is None:
            known = [end for end, names in _ENDINGS.items() if names[0] in self.renderers]
            raise UsageError(
                f"--output {quoted(out.output)}: no format has the ending {quoted(ending)}; choose "
                f"from {choices(known)}, or say what to write with --format"
            )
        if promised is None:
            return out.format or self.names[0]
        chosen = out.format or promised[0]
        if chosen in promised and chosen in self.renderers:
            return chosen
        raise UsageError(
            f"--output {quoted(out.output)} is no place for {chosen}; use another ending than "
            f"{ending}, or another --format"
        )

    def render(
        self,
        out: OutputOptions,
        *answer: Any,
        every_row: bool = False,
        picture: bool | None = False,
        **for_people: Any,
    ) -> Iterable[Chunk]:
        """Return the answer in the format asked for, as text or bytes; no other is rendered.

        The values of the answer go to every renderer, those with a name to tables, code and
        annotations alone; `every_row` and `picture` are for the screen, see `AllOption` and
        `PictureOption`.
        """
        chosen = self.chosen(out, picture=picture)
        render = self.renderers[chosen]
        # Where the answer itself has no place for assumptions, they are reported on stderr.
        if chosen not in _WITH_HEADING or out.output not in (None, "-"):
            _say_assumptions(*answer[:1])
        shown = screen(out.output, picture=picture)
        return render(answer, replace(shown, abridged=shown.abridged and not every_row), for_people)

    def write(self, out: OutputOptions, *answer: Any, **how: Any) -> None:
        """Write the answer where it is to go, see `render`."""
        write(self.render(out, *answer, **how), out.output)


def _say_assumptions(answer: object = None) -> None:
    holder = answer if hasattr(answer, "assumptions") else getattr(answer, "order", None)
    for text in getattr(holder, "assumptions", ()):
        say(f"assumed: {text}")


def formats_of(verb: str, answer: str = "", *, pictures: bool = False, **more: Renderer) -> Formats:
    """Return the formats that answers have: a table for people, the others for programs, pictures.

    The view of a verb names their functions after the answer, which is named like the verb mostly.

    >>> formats_of("plan").names
    ('table', 'json', 'yaml', 'csv')
    """
    name = f"verbs.{verb}.view:{answer or verb}"
    made = {"table": as_table(f"{name}_table"), "json": as_json(f"{name}_document")}
    made |= {"yaml": as_yaml(f"{name}_document"), "csv": as_csv(f"{name}_rows")}
    made |= {"svg": as_svg} if pictures else {}
    return Formats(renderers=made | {one.replace("_", "-"): more[one] for one in more})


def as_svg(answer: tuple[Any, ...], *_: object) -> Iterator[str]:
    """Return the pictures of an answer that has some."""
    from shardctl.draw.picture import pictures_of
    from shardctl.draw.svg import svg_file

    return _inert_lines(svg_file(pictures_of(*answer)))


def _renderer(
    write: Callable[[Any], Any] | str = "", *, screen: bool = False, people: bool = False
) -> Callable[[str], Renderer]:
    """Return what makes a renderer of the name of a function, `module:function`."""

    def of(name: str) -> Renderer:
        def render(answer: tuple[Any, ...], shown: Screen, for_people: Mapping[str, Any]) -> Any:
            places = (*answer, shown) if screen else answer
            made = named(f"shardctl.{name}")(*places, **(for_people if people else {}))
            if isinstance(write, str):
                return named(f"shardctl.files.documents:{write}")(made) if write else made
            return write(made)

        return render

    return of


def _inert_lines(chunks: Iterable[str]) -> Iterator[str]:
    rest = ""
    for chunk in chunks:
        lines, end, rest = (rest + chunk).rpartition("\n")
        yield inert(lines + end)
    yield inert(rest)


# For people: the function takes a screen after the answer's values. Names in a table may be
# anyone's, so no line of it is left a command to a runner of CI.
as_table = _renderer(_inert_lines, screen=True, people=True)
# Text or bytes as they are.
as_text = _renderer()
# Python code or a CI runner's annotations, given what tables are: nothing in them is made inert.
as_code = _renderer(people=True)
# Documents, and rows under their names.
as_json, as_yaml, as_csv = map(_renderer, ("to_json", "to_yaml", "to_csv"))
