# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl help`: the options of a command, the guide of a subject, and the list of both."""

import contextlib
import inspect
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.formats import Formats, OutputOptions
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError
from shardctl.guide.guides import Guide, guide_questions, read_guide

if TYPE_CHECKING:
    from shardctl.rendering.guide.man_page import CommandHelp
    from shardctl.rendering.text.tables import Screen

    Topic = tuple[str | None, Guide | None]  # a command, None for all of them, and a guide


def _pages(answer: "Topic", screen: "Screen", for_people: Mapping[str, Any]) -> Iterator[str]:
    """Yield the guide, then the options as `-h` shows them; without a topic the list of both."""
    command, guide = answer
    if guide is not None and screen.width is not None:
        from shardctl.rendering.guide.terminal import guide_on_terminal  # Rich: 40 ms

        yield guide_on_terminal(guide, screen)
    elif guide is not None:
        yield guide.text
    if guide is not None and command is None:
        return
    options = _options_page(command, on_terminal=screen.width is not None)
    if guide is None:
        yield options
    elif screen.width is not None:
        yield f"\n{options}"
    else:
        yield f"\n## Options of `shardctl {command}`\n\n```text\n{options}```\n"
    if command is None:
        from shardctl.rendering.guide.listing import guides_list

        yield "\n"
        yield from guides_list(guide_questions(), screen)


def _man_page(answer: "Topic", screen: "Screen", for_people: Mapping[str, Any]) -> Iterator[str]:
    from shardctl.rendering.guide.man_page import man_page

    command, guide = answer
    if guide is not None and command is None:
        return man_page(None, guide)
    return man_page(_command_help(command), guide, {} if command else guide_questions())


FORMATS = Formats(renderers={"markdown": _pages, "man": _man_page})


def _offered(incomplete: str) -> list[tuple[str, str]]:
    """Offer commands and guides, each with what it answers."""
    commands = {name: page.short_help for name, page in _group(None).commands.items()}
    topics = {**guide_questions(), **commands}
    return [(name, topics[name]) for name in sorted(topics) if name.startswith(incomplete)]


# A command is named like its module; nothing here needs the built-in of that name.
def help(
    out: OutputOptions,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[COMMAND|SUBJECT]",
            help="A command, or the subject of a guide; without it all of them are listed.",
            autocompletion=_offered,
        ),
    ] = None,
    man_pages: Annotated[
        str | None,
        typer.Option(
            "--man-pages", metavar="DIR", help="Write every man page, under DIR/man1 and DIR/man7."
        ),
    ] = None,
) -> None:
    """Explain a command or a subject, with sessions to try, rules and limits.

    Of a name that is both, the guide comes first and then the options. A terminal shows a guide
    laid out, a pipe or a file gets its Markdown. The format man is a page for man:
    shardctl help -f man resume | man -l -

    Example: shardctl help resume
    """
    from shardctl.cli.main import COMMANDS

    subjects = guide_questions()
    if man_pages is not None:
        if topic is not None or out.output is not None:
            raise UsageError("--man-pages writes every page into DIR: leave out what else is asked")
        _write_man_pages(Path(man_pages))
        return
    if topic is not None and topic not in COMMANDS and topic not in subjects:
        raise UsageError(_no_page(topic, sorted({*COMMANDS, *subjects})))
    FORMATS.write(out, *_answer(topic))


def _no_page(topic: str, topics: list[str]) -> str:
    import difflib  # 4 ms

    close = difflib.get_close_matches(topic, topics, n=3, cutoff=0.6)
    if close:
        return f"no help page {quoted(topic)}; close help pages: {choices(close)}"
    return f"no help page {quoted(topic)}; choose from {choices(topics, 60)}"


def _write_man_pages(folder: Path) -> None:
    """Write each page where man looks for it: commands in section 1, guides alone in 7."""
    from shardctl.cli.main import COMMANDS

    for topic in (None, *dict.fromkeys((*COMMANDS, *guide_questions()))):
        section = 1 if topic is None or topic in COMMANDS else 7
        name = "shardctl" if topic is None else f"shardctl-{topic}"
        file = folder / f"man{section}" / f"{name}.{section}"
        file.parent.mkdir(parents=True, exist_ok=True)
        FORMATS.write(OutputOptions(format="man", output=str(file)), *_answer(topic))


def _answer(topic: str | None) -> "Topic":
    from shardctl.cli.main import COMMANDS

    guide = read_guide(topic) if topic in guide_questions() else None
    return (topic if topic in COMMANDS else None), guide


def _group(command: str | None) -> Any:
    """Return the application with one command, or with all."""
    from shardctl.cli.app import application
    from shardctl.cli.main import COMMANDS

    return typer.main.get_command(application(COMMANDS if command is None else (command,)))


class _Page(io.BytesIO):
    """What stands in for stdout while a help page is made, a terminal where the real one is."""

    def __init__(self, *, on_terminal: bool) -> None:
        super().__init__()
        self._on_terminal = on_terminal

    def isatty(self) -> bool:
        return self._on_terminal


def _options_page(command: str | None, *, on_terminal: bool) -> str:
    """Return what `-h` shows, by asking for it."""
    group = _group(command)
    words = ["--help"] if command is None else [command, "--help"]
    page = _Page(on_terminal=on_terminal)
    stdout = io.TextIOWrapper(page, encoding="utf-8", write_through=True)
    with (
        contextlib.redirect_stdout(stdout),
        contextlib.suppress(typer.Exit),
        group.make_context("shardctl", words, obj=tuple(words)) as ctx,
    ):
        group.invoke(ctx)
    return page.getvalue().decode()


def _command_help(name: str | None) -> "CommandHelp":
    """Return what the man page of a command says, or of shardctl as a whole."""
    from shardctl.rendering.guide.man_page import CommandHelp

    group = _group(name)
    root = group.make_context("shardctl", [], resilient_parsing=True)
    command = group if name is None else group.commands[name]
    ctx = root if name is None else typer.Context(command, info_name=name, parent=root)
    entries: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None)
            title = panel or ("Arguments" if is_argument else "Options")
            entries.setdefault(title, []).append(record)
    if name is None:
        entries["Commands"] = [(key, one.short_help) for key, one in group.commands.items()]
    first, *paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return CommandHelp(
        name=name or "",
        usage=command.get_usage(ctx).removeprefix("Usage: "),
        summary=" ".join(first.split()),
        paragraphs=tuple(" ".join(text.split()) for text in paragraphs),
        options=tuple((title, tuple(records)) for title, records in entries.items() if records),
    )
