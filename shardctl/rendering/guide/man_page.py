"""Man pages, made of the same help pages and guides that a terminal shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.files.head import own_version
from shardctl.guide.guides import Guide
from shardctl.rendering.guide.roff import bold, escaped, lines_as_typed, roff

if TYPE_CHECKING:
    from shardctl.rendering.help_page import HelpPage


def man_page(name: str, page: HelpPage | None, guide: Guide | None) -> Iterator[str]:
    """Yield the man page of a command, of a guide, or of a command with its guide.

    Commands are in section 1, guides alone in section 7.
    """
    section, manual = (1, "User Commands") if page is not None else (7, "Guides of shardctl")
    yield f'.TH "{name.upper()}" {section} "" "shardctl {own_version()}" "{manual}"\n'
    summary = guide.question if guide is not None else ""
    if page is not None:
        summary = page.paragraphs[0].rstrip(".")
    yield f".SH NAME\n{escaped(name, code=True)} \\- {escaped(summary)}\n"
    if page is not None:
        yield from _command(page)
    if guide is not None:
        from rich.markdown import Markdown

        from shardctl.rendering.guide.markdown import resolve_links

        tokens = resolve_links(Markdown(guide.text))
        yield f".SH {'GUIDE' if page is not None else 'DESCRIPTION'}\n"
        yield roff(tokens)


def _command(page: HelpPage) -> Iterator[str]:
    yield f".SH SYNOPSIS\n{escaped(page.usage, code=True)}\n.SH DESCRIPTION\n"
    for paragraph in (*page.paragraphs, *page.closing):
        yield f".PP\n{escaped(paragraph)}\n"
    for panel in page.panels:
        yield f'.SH "{escaped(panel.title.upper(), code=True)}"\n'
        for entry in panel.entries:
            yield f".TP\n{bold(', '.join(entry.names))}\n{escaped(entry.meaning)}\n"
    if page.examples:
        yield f".SH EXAMPLES\n{lines_as_typed(chr(10).join(page.examples))}"
