# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl help`, the options of a command and the guide of a subject; `shardctl completion`."""

import io
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from shardctl.base.text import choices, quoted
from shardctl.cli.completion import SHELLS, completion_script
from shardctl.cli.failures import no_such
from shardctl.cli.options.shared import argument
from shardctl.cli.output import Formats, OutputOptions, paged, write
from shardctl.errors import UsageError
from shardctl.guide.guides import Guide, guide_questions, read_guide

if TYPE_CHECKING:
    from shardctl.draw.tables import Screen

    Topic = tuple[str | None, Guide | None]  # a command, None for all of them, and a guide


def _pages(answer: "Topic", screen: "Screen", for_people: Mapping[str, Any]) -> Iterator[str]:
    """Yield the guide, then all options of the command; without a topic the list of both."""
    command, guide = answer
    if guide is not None and screen.width is not None:
        yield guide_on_terminal(guide, screen)
    elif guide is not None:
        yield guide.text
    if command is not None or guide is None:
        options = _options(command)
        whole = f"\n## Options of `shardctl {command}`\n\n```text\n{options}```\n"
        yield options if guide is None else whole if screen.width is None else f"\n{options}"


FORMATS = Formats(renderers={"markdown": _pages})


def _offered(incomplete: str) -> list[tuple[str, str]]:
    """Offer commands and guides, each with what it answers."""
    commands = {name: page.short_help for name, page in _group(None).commands.items()}
    topics = {**guide_questions(), **commands}
    return [(name, topics[name]) for name in sorted(topics) if name.startswith(incomplete)]


# A command is named like its module; nothing here needs the built-in of that name.
def help(
    out: OutputOptions, topic: Annotated[str | None, argument(offered=_offered)] = None
) -> None:
    """Explain a command or a subject, with sessions to try, rules and limits.

    Of a name that is both, the guide comes first and then all options. A terminal shows a guide
    laid out, in the pager of $PAGER or in less. A pipe or a file gets its Markdown.

    Arguments:
      topic [COMMAND|SUBJECT]: A command, or the subject of a guide; without it all of them are
        listed.

    Examples:
      # What there is to read
      shardctl help
      # A guide, and the options of the command of that name
      shardctl help resume
      # The same as a file
      shardctl help resume -o resume.md
    """
    from shardctl.cli.main import COMMANDS

    subjects = guide_questions()
    pages = sorted({*COMMANDS, *subjects})
    if topic is not None and topic not in pages:
        if topic.upper().startswith("SC") and topic[2:].isdigit():
            raise UsageError(f"{topic} is a finding; shardctl lint {topic.upper()} explains it")
        raise UsageError(no_such("help page", topic, pages, "shardctl help lists them"))
    guide = read_guide(str(topic)) if topic in subjects else None
    command = topic if topic in COMMANDS else None
    text = "".join(map(str, FORMATS.render(out, command, guide)))
    if out.output is not None or not paged(text):
        write([text], out.output)


def completion(shell: Annotated[str, argument()]) -> None:
    """Print the script that completes shardctl in a shell: bash, zsh or fish.

    An installation brings these files along; what needs a line in an rc file sources this.

    Arguments:
      shell bash|zsh|fish: The shell.

    Examples:
      # bash, where bash-completion looks
      shardctl completion bash > ~/.local/share/bash-completion/completions/shardctl
      # fish
      shardctl completion fish > ~/.config/fish/completions/shardctl.fish
    """
    if shell not in SHELLS:
        raise UsageError(f"no completion for {quoted(shell)}; choose from {choices(SHELLS)}")
    write([completion_script(shell)], None)


def _group(command: str | None) -> Any:
    """Return the application with one command, or with all."""
    from shardctl.cli.app import application
    from shardctl.cli.main import COMMANDS

    return application(*(COMMANDS if command is None else (command,)))


def _options(command: str | None) -> str:
    """Return the page that `--help-all` shows; that of all commands lists the guides too."""
    from shardctl.cli.app import WHOLE

    group = _group(command)
    ctx = group.make_context("shardctl", [], resilient_parsing=True)
    if command is not None:
        one = group.commands[command]
        ctx.meta[WHOLE] = True
        return f"{one.get_help(typer.Context(one, info_name=command, parent=ctx))}\n"
    formatter = ctx.make_formatter()
    with formatter.section("Guides: shardctl help SUBJECT"):
        formatter.write_dl(list(guide_questions().items()))
    return f"{group.get_help(ctx)}\n\n{formatter.getvalue()}"


_OTHER_GUIDE = re.compile(r"\[([^\]]+)\]\(([a-z-]+)\.md(?:#[^)]*)?\)")


def guide_on_terminal(guide: Guide, screen: "Screen") -> str:
    """Return a guide as lines of at most the screen's width, which are never very long.

    Where GitHub opens another guide it names the command that shows it.
    """
    from rich.console import Console, ConsoleOptions, RenderResult  # 40 ms
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    from shardctl.draw.tables import WIDEST

    class Rows(TableElement):
        """A table whose long words go on in the next line, where Rich cuts them."""

        # Rich cuts words that do not fit; "fold" wraps them.
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                for column in table.columns if isinstance(table, Table) else ():
                    column.overflow = "fold"
                yield table

    class Page(Markdown):
        elements: ClassVar[dict[str, Any]] = {**Markdown.elements, "table_open": Rows}

    text = _OTHER_GUIDE.sub(r"\1 (`shardctl help \2`)", guide.text)
    console = Console(
        file=io.StringIO(),
        width=min(screen.width or WIDEST, WIDEST),
        height=100,
        force_terminal=True,
        color_system="standard" if screen.color else None,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(Page(text, hyperlinks=False, code_theme="ansi_dark"))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
