"""A guide on a terminal: Rich renders its Markdown, folded to the screen's width, nothing cut."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

from shardctl.draw.tables import WIDEST

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult

    from shardctl.draw.tables import Screen
    from shardctl.guide.guides import Guide

_OTHER_GUIDE = re.compile(r"\[([^\]]+)\]\(([a-z-]+)\.md(?:#[^)]*)?\)")


class _Rows(TableElement):
    """A table whose long words go on in the next line, where Rich cuts them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _Page(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _Rows,
    }


def guide_on_terminal(guide: Guide, screen: Screen) -> str:
    """Return a guide as lines of at most the screen's width, which are never very long.

    Where GitHub opens another guide it names the command that shows it.
    """
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
        console.print(_Page(text, hyperlinks=False, code_theme="ansi_dark"))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
