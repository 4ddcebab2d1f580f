"""Markdown as roff for man(7): the subset of the macros that groff and mandoc both have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardctl.files.head import own_version
from shardctl.guide.guides import Guide

if TYPE_CHECKING:
    from markdown_it.token import Token

    from shardctl.rendering.help_page import HelpPage


_INDENT = 4  # of a session or a file, and of what follows a bullet
_BULLET = 2

# What roff would take for something else, or a typesetter would make another character of.
_ESCAPES = {"\\": r"\e"}
_IN_CODE = {**_ESCAPES, "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def escaped(text: str, *, code: bool = False) -> str:
    r"""Return text as roff that shows it; what is code can be copied from the page.

    A line that begins with `.` or `'` would be a request, so each gets `\&` before it.

    >>> escaped("a\\b\n.so c"), escaped("--take 'x'", code=True)
    ('a\\eb\n\\&.so c', '\\-\\-take \\(aqx\\(aq')
    """
    signs = _IN_CODE if code else _ESCAPES
    shown = "".join(
        signs.get(char, char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text
    )
    return re.sub(r"^(?=[.'])", r"\\&", shown, flags=re.MULTILINE)


def bold(text: str) -> str:
    r"""Return code in bold.

    >>> bold("-o")
    '\\fB\\-o\\fR'
    """
    return rf"\fB{escaped(text, code=True)}\fR"


def lines_as_typed(text: str) -> str:
    """Return lines that are neither filled nor changed."""
    return f".PP\n.RS {_INDENT}\n.nf\n{escaped(text.rstrip(), code=True)}\n.fi\n.RE\n"


def without_idle_macros(page: str) -> str:
    r"""Return a page without the paragraphs that headings begin already; mandoc warns of them.

    >>> without_idle_macros(".SH NAME\n.PP\nText.\n.PP\nMore.\n")
    '.SH NAME\nText.\n.PP\nMore.\n'
    """
    return re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", page, flags=re.MULTILINE)


def roff(tokens: Sequence[Token]) -> str:
    """Return the blocks of a document; the heading of the whole document is left out.

    A table becomes a list of its rows under their first cells, which fits any width.

    Raises:
        ValueError: a kind of block that no guide has had so far.
    """
    return "".join(_blocks(tokens))


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    marks: list[str] = []  # of the lists that are open: a bullet, or nothing where items count
    begins = False  # whether the next paragraph stands beside its bullet
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.type == "heading_open":
            yield _heading(token.tag, tokens[position + 1])
            position += 2
        elif token.type == "table_open":
            start = position
            while tokens[position].type != "table_close":
                position += 1
            yield from _table(tokens[start:position])
        elif token.type == "paragraph_open":
            yield "" if begins else f'.IP "" {_BULLET}\n' if marks else ".PP\n"
        elif token.type == "inline":
            yield f"{_text(token)}\n"
        elif token.type == "fence":
            yield lines_as_typed(token.content)
        elif token.type != "paragraph_close":
            yield _of_list(token, marks)
        begins = token.type == "list_item_open"
        position += 1


def _of_list(token: Token, marks: list[str]) -> str:
    """Return what begins or ends a list or an item of one, `marks` kept."""
    match token.type:
        case "bullet_list_open" | "ordered_list_open":
            marks.append(r"\(bu" if token.type == "bullet_list_open" else "")
            return f".RS {_BULLET}\n" if len(marks) > 1 else ""
        case "bullet_list_close" | "ordered_list_close":
            marks.pop()
            return ".RE\n" if marks else ""
        case "list_item_open":
            return f".IP {marks[-1] or token.info + '.'} {_BULLET if marks[-1] else _INDENT}\n"
        case "list_item_close":
            return ""
        case other:
            raise ValueError(f"no roff for {other}")


def _heading(tag: str, title: Token) -> str:
    if tag == "h1":
        return ""
    if tag == "h2":  # in capitals, as the sections of every man page
        text = escaped("".join(child.content for child in title.children or ()).upper(), code=True)
    else:
        text = _text(title)
    return '{} "{}"\n'.format(".SH" if tag == "h2" else ".SS", text.replace('"', r"\(dq"))


def _table(tokens: Sequence[Token]) -> Iterator[str]:
    cells = [_text(token) for token in tokens if token.type == "inline"]
    count = sum(token.type == "th_open" for token in tokens)
    headings = cells[:count]
    for start in range(count, len(cells), count):
        first, *others = cells[start : start + count]
        yield f".TP\n{first}\n"
        named = zip(headings[1:], others, strict=True)
        told = [cell if count == 2 else f"{heading}: {cell}" for heading, cell in named if cell]
        yield "\n.br\n".join(told or [r"\&"]) + "\n"


def _text(token: Token) -> str:
    """Return the words of a paragraph, a heading or a cell."""
    return re.sub(r"^(?=[.'])", r"\\&", "".join(_inline(token.children or ())), flags=re.MULTILINE)


def _inline(tokens: Sequence[Token]) -> Iterator[str]:
    href = ""
    for token in tokens:
        match token.type:
            case "text":
                yield escaped(token.content)
            case "code_inline":
                yield bold(token.content)
            case "softbreak" | "hardbreak":
                yield "\n"
            case "strong_open":
                yield r"\fB"
            case "em_open":
                yield r"\fI"
            case "strong_close" | "em_close":
                yield r"\fR"
            case "link_open":
                href = str(token.attrs["href"])
            case "link_close":
                yield f" ({escaped(href, code=True)})"
            case other:
                raise ValueError(f"no roff for {other}")


# Man pages, made of the same help pages and guides that a terminal shows.

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
