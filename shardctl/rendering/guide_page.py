"""A guide on a terminal: Rich renders its Markdown, folded to the screen's width, nothing cut."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich import box
from rich.console import Console
from rich.markdown import (
    CodeBlock,
    Heading,
    Markdown,
    MarkdownElement,
    TableElement,
)
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from shardctl.rendering.text.tables import WIDEST

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import ConsoleOptions, RenderResult

    from shardctl.guide.guides import Guide
    from shardctl.rendering.text.tables import Screen


# Weight alone, as in man pages: it is readable on black and on white.
_THEME = Theme(
    {
        "markdown.code": "bold",
        "markdown.code_block": "none",
        "markdown.h1": "bold",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.link": "none",
        "markdown.link_url": "underline",
        "markdown.table.border": "none",
        "markdown.table.header": "bold",
    }
)
_LEAST_COLUMN = 22  # columns of the screen a table's column needs, below which records read better


class _Title(Heading):
    """A heading at the left margin, where Rich centres or frames the first one."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Lines(CodeBlock):
    """A file or a session as it is typed: indented, the commands bold, long lines folded."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Text(str(self.text).rstrip(), overflow="fold")
        if self.lexer_name == "console":
            code.highlight_regex(r"(?m)^\$ .*$", "bold")
        yield Padding(code, (0, 0, 0, 2))


class _Rows(TableElement):
    """A table, or a list of records where the screen is too narrow for its columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self.header.row if self.header is not None else None
        rows = self.body.rows if self.body is not None else []
        headings = [cell.content for cell in head.cells] if head is not None else []
        if options.max_width < _LEAST_COLUMN * len(headings):
            for row in rows:
                first, *others = (cell.content for cell in row.cells)
                yield first
                for heading, cell in zip(headings[1:], others, strict=True):
                    if cell.plain:
                        yield Padding(Text.assemble(heading, ": ", cell), (0, 0, 0, 4))
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for heading in headings:
            heading.stylize("markdown.table.header")
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Page(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Lines,
        "heading_open": _Title,
        "table_open": _Rows,
    }


def guide_on_terminal(guide: Guide, screen: Screen) -> str:
    """Return a guide as lines of at most the screen's width, which are never very long."""
    page = _Page(guide.text, hyperlinks=False)
    resolve_links(page)
    console = Console(
        file=io.StringIO(),
        width=min(screen.width or WIDEST, WIDEST),
        height=100,
        force_terminal=True,
        color_system="standard" if screen.color else None,
        theme=_THEME,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(page)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


# The Markdown of a guide as tokens, parsed by the parser that comes with Rich.

_OTHER_GUIDE = re.compile(r"([a-z-]+)\.md(?:#.*)?")


def resolve_links(document: Markdown) -> list[Token]:
    """Make links to other guides the commands that show them, and return the document's tokens.

    On GitHub `resume.md` opens the guide beside this one; on a terminal nothing would.
    """
    for token in document.parsed:
        if token.children:
            token.children = list(_resolved(token.children))
    return document.parsed


def _resolved(tokens: Sequence[Token]) -> Iterator[Token]:
    from markdown_it.token import Token

    open_guide: str | None = None
    for token in tokens:
        if token.type == "link_open":
            match = _OTHER_GUIDE.fullmatch(str(token.attrs.get("href", "")))
            if match is not None:
                open_guide = match[1]
                continue
        elif token.type == "link_close" and open_guide is not None:
            yield Token("text", "", 0, content=" (")
            yield Token("code_inline", "code", 0, content=f"shardctl help {open_guide}")
            yield Token("text", "", 0, content=")")
            open_guide = None
            continue
        yield token
