"""Man pages, made of the same help pages and guides that a terminal shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.files.head import own_version
from shardctl.guide.guides import Guide
from shardctl.rendering.guide.roff import bold, escaped, lines_as_typed, roff, without_idle_macros

if TYPE_CHECKING:
    from shardctl.rendering.help_page import HelpPage

_EXAMPLE = 66  # columns of an example, which stands 11 columns from the left


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
        yield without_idle_macros("".join(_command(page)))
    if guide is not None:
        from rich.markdown import Markdown

        from shardctl.rendering.guide.markdown import resolve_links

        tokens = resolve_links(Markdown(guide.text))
        title = "GUIDE" if page is not None else "DESCRIPTION"
        yield without_idle_macros(f".SH {title}\n{roff(tokens)}")


def _command(page: HelpPage) -> Iterator[str]:
    from shardctl.rendering.help_page import example_lines

    yield f".SH SYNOPSIS\n{escaped(page.usage, code=True)}\n.SH DESCRIPTION\n"
    yield "\n.PP\n".join(map(escaped, (*page.paragraphs, *page.closing))) + "\n"
    for panel in page.panels:
        yield f'.SH "{escaped(panel.title.upper(), code=True)}"\n'
        for entry in panel.entries:
            yield f".TP\n{bold(', '.join(entry.names))}\n{escaped(entry.meaning)}\n"
    if page.examples:
        lines = (line for example in page.examples for line in example_lines(example, _EXAMPLE))
        yield f".SH EXAMPLES\n{lines_as_typed(chr(10).join(lines))}"
