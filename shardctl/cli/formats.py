# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The formats of a command, each with what writes it: declared once, by the command.

What `--format` takes, its help, what a shell offers and the writing all come from that declaration.
A renderer is named and not imported, since a help page or a completion has no answer to render.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from shardctl.base.text import choices, either, inert, nearest_first, quoted
from shardctl.cli.output import Chunk, say, screen, write
from shardctl.cli.panels import OUTPUT
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.draw.tables import Screen

# Makes an answer text or bytes, for a screen and with what only people, and code, are given.
Renderer = Callable[[tuple[Any, ...], "Screen", Mapping[str, Any]], Iterable[Chunk]]

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
}

# What is of no use on a terminal, in words.
_FOR_FILES = {"npy": "bytes", "html": "a page for browsers"}
_PICTURES = ("svg",)

# What shows on stdout what an order depends on unstated; bare rows have no place for it.
_WITH_HEADING = ("table", "json", "yaml", "python", "html")


_TO_A_FILE = "Write to a file, whole or not at all; its ending chooses the format"


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How and where the answer is written; what `format` may be is declared by each command."""

    panel: ClassVar[str] = OUTPUT

    format: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT")] = None
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help=_TO_A_FILE)
    ] = None


# Of a command whose tables can be long: a terminal gets the first and last rows, a pipe all.
_ALL = "Show every row on a terminal too, as in a pipe or a file."
AllOption = Annotated[bool, typer.Option("--all", help=_ALL, rich_help_panel=OUTPUT)]

# Of a command whose tables have pictures: a terminal gets them where they fit.
_DRAW = "Draw pictures in the table [default: on a terminal that can show them]."
_PICTURE = typer.Option("--picture/--no-picture", help=_DRAW, rich_help_panel=OUTPUT)
PictureOption = Annotated[bool | None, _PICTURE]


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
        default, *others = self.names
        if default == "table":
            programs = [name for name in others if name not in _PICTURES]
            text = f"How to write the answer: table for people; {either(programs)} for programs"
            text += "; svg as pictures" if "svg" in others else ""
        else:
            text = f"How to write the answer: {either(self.names)}"
        text += f" [default: {default}]"

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
        if chosen not in _WITH_HEADING or out.output not in (None, "-"):
            _say_assumptions(*answer[:1])
        shown = screen(out.output, picture=picture)
        return render(answer, replace(shown, abridged=shown.abridged and not every_row), for_people)

    def write(
        self,
        out: OutputOptions,
        *answer: Any,
        every_row: bool = False,
        picture: bool | None = False,
        **for_people: Any,
    ) -> None:
        """Write the answer where it is to go, see `render`."""
        chunks = self.render(out, *answer, every_row=every_row, picture=picture, **for_people)
        write(chunks, out.output)


def _say_assumptions(answer: object = None) -> None:
    holder = answer if hasattr(answer, "assumptions") else getattr(answer, "order", None)
    for text in getattr(holder, "assumptions", ()):
        say(f"assumed: {text}")


def verb_formats(module: str, verb: str, *, pictures: bool = False) -> dict[str, Renderer]:
    """Return the formats that answers have: a table for people, the others for programs, pictures.

    The module names their functions after the verb.

    >>> list(verb_formats("verbs.plan.view", "plan"))
    ['table', 'json', 'yaml', 'csv']
    """
    return {
        "table": as_table(f"{module}:{verb}_table"),
        "json": as_json(f"{module}:{verb}_document"),
        "yaml": as_yaml(f"{module}:{verb}_document"),
        "csv": as_csv(f"{module}:{verb}_rows"),
        **({"svg": as_svg} if pictures else {}),
    }


def as_svg(answer: tuple[Any, ...], *_: object) -> Iterator[str]:
    """Return the pictures of an answer that has some."""
    pictures = _function("draw.picture:pictures_of")(*answer)
    return _inert_lines(_function("draw.svg:svg_file")(pictures))


def _renderer(
    write: Callable[[Any], Any] | str = "", *, screen: bool = False, people: bool = False
) -> Callable[[str], Renderer]:
    """Return what makes a renderer of the name of a function, `module:function`."""

    def of(name: str) -> Renderer:
        def render(answer: tuple[Any, ...], shown: "Screen", for_people: Mapping[str, Any]) -> Any:
            places = (*answer, shown) if screen else answer
            made = _function(name)(*places, **(for_people if people else {}))
            if isinstance(write, str):
                return _function(f"files.documents:{write}")(made) if write else made
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


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"shardctl.{module}"), function)
