"""The elements of a page: text of others made harmless, sentences, tables that scroll, sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple, TypeVar

from shardctl.base.text import printable
from shardctl.draw.picture import Picture
from shardctl.draw.svg import STYLE as PICTURE_STYLE
from shardctl.draw.svg import escaped, svg_element
from shardctl.draw.tables import Column
from shardctl.verbs.report.answer import NotShown

_LONGEST = 2000  # characters of a text of others
_SHORT = 28  # letters of code that fit into a line of a telephone
_CODE = re.compile(r"(`[^`]+`|(?<!\S)--[a-z][a-z-]+(?: (?:-?\d+|[A-Z]+(?:/[A-Z]+)?\b|auto\b))?)")


class Section(NamedTuple):
    """A section of the page: `anchor` is what links name, `title` is our own text, `body` HTML."""

    anchor: str
    title: str
    body: Iterable[str]


Answer = TypeVar("Answer")


def part(answer: Answer | NotShown, body: Callable[[Answer], Iterable[str]]) -> Iterable[str]:
    """Return the body of a part of a report, or why it is not there."""
    return (not_shown(answer),) if isinstance(answer, NotShown) else body(answer)


def plain(text: object) -> str:
    r"""Return text as HTML; nothing in it is markup, and what cannot be seen is an escape.

    What a CI runner reads as a command in its log, where a page may go, is spelt another way.

    >>> plain("<b> & \u202e"), plain("##[error]"), plain("::error::")
    ('&lt;b&gt; &amp; \\u202e', '&#35;&#35;[error]', '&#58;:error&#58;:')
    """
    # Escaped first, so that the entities below are not escaped again.
    html = escape(printable(str(text), _LONGEST))
    return html.replace("##", "&#35;&#35;").replace("::", "&#58;:")


def name(text: object) -> str:
    """Return a name that others gave, which is read in its own direction.

    >>> name("a<b")
    '<bdi>a&lt;b</bdi>'
    """
    return f"<bdi>{plain(text)}</bdi>"


def wrapping(text: object) -> str:
    """Return text as HTML that may break behind what joins its words.

    A text that is long, or of another alphabet, may be of others, and so is kept apart.

    >>> wrapping("read.shuffle_seed")
    'read.<wbr>shuffle_<wbr>seed'
    """
    # `<wbr>` allows a line break without a hyphen.
    html = re.sub(r"(?<=[a-z])[._/](?=[a-z])", r"\g<0><wbr>", plain(text))
    own = str(text).isascii() and len(str(text)) <= _SHORT
    return html if own else f"<bdi>{html}</bdi>"


def code(text: object) -> str:
    """Return text to be typed, or that a file says; a short one is not broken."""
    shown = plain(text)
    kind = ' class="short"' if len(shown) <= _SHORT else ""
    return f"<code{kind}>{shown}</code>"


def sentence(text: object) -> str:
    """Return a sentence of an answer, in which options, and what is in backticks, are code.

    >>> sentence("give --buffer-seed 1, not <none>")
    'give <code class="short">--buffer-seed 1</code>, not &lt;none&gt;'
    """
    # `split` with a group returns text and matches in turn: odd places are code.
    parts = _CODE.split(str(text))
    return "".join(
        code(part.strip("`")) if at % 2 else plain(part) for at, part in enumerate(parts)
    )


def paragraph(html: str, kind: str = "") -> str:
    """Return a paragraph of HTML, nothing for none."""
    return f"<p{_class(kind)}>{html}</p>\n" if html else ""


def items(pieces: Iterable[str], kind: str = "") -> str:
    """Return a list of pieces of HTML, nothing for none."""
    listed = "".join(f"<li>{piece}</li>\n" for piece in pieces)
    return f"<ul{_class(kind)}>\n{listed}</ul>\n" if listed else ""


def facts(pairs: Iterable[tuple[str, str]], kind: str = "") -> str:
    """Return a list of names, which are text, and what they are, which is HTML."""
    listed = "".join(f"<div><dt>{plain(key)}</dt><dd>{html}</dd></div>\n" for key, html in pairs)
    return f"<dl{_class(kind)}>\n{listed}</dl>\n"


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "",
    more: Iterable[str] = (),
    is_open: bool = False,
) -> str:
    """Return a table that opens by a click or a key, in a box that scrolls where there is no room.

    Cells are text, the first of a row its heading. `more` are sentences below it.
    """
    sides = [' class="number"' if column.align == "right" else "" for column in columns]
    heads = "".join(
        f'<th scope="col"{side}>{plain(column.heading)}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    body = "".join(f"<tr>{_row(list(map(wrapping, row)), sides)}</tr>\n" for row in rows)
    return (
        f"<details{' open' * is_open}><summary>{plain(caption)}</summary>\n"
        f'<div class="scroll{" " * bool(kind)}{kind}" role="group" tabindex="0" '
        f'aria-label="{plain(caption)}">\n'
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
        f"{''.join(paragraph(sentence(line), 'quiet') for line in more)}</details>\n"
    )


def _row(row: Sequence[str], sides: Sequence[str]) -> str:
    first, *others = zip(row, sides, strict=True)
    heading = f'<th scope="row"{first[1]}>{first[0]}</th>'
    return heading + "".join(f"<td{side}>{cell}</td>" for cell, side in others)


def not_shown(part: NotShown) -> str:
    """Return why a part of a report is not there, in its place."""
    return paragraph(f"<strong>Not shown:</strong> {sentence(part.reason)}", "not-shown")


def link(anchor: str, html: str) -> str:
    """Return a link to a place of the page."""
    return f'<a href="#{anchor}">{html}</a>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def figures(pictures: Sequence[Picture]) -> str:
    """Return pictures with what to see in them, side by side where there is room."""
    shown = "".join(map(_figure, pictures))
    return f'<div class="figures">\n{shown}</div>\n' if shown else ""


def _figure(picture: Picture) -> str:
    return (
        f'<figure><figcaption><strong class="title">{escaped(picture.title)}</strong> '
        f'<span class="caption">{escaped(picture.caption)}</span></figcaption>'
        f"{svg_element(picture)}</figure>\n"
    )


# A page, whose template and style are files beside this one.

_TEMPLATE = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
STYLE = Path(__file__).with_name("page.css").read_text("utf-8") + PICTURE_STYLE


def page(
    *, title: str, heading: str, kind: str, more: str = "", sections: Sequence[Section]
) -> str:
    """Return a page: its title and kind are text, its heading, and more of it, HTML."""
    return _TEMPLATE.substitute(
        title=plain(title),
        style=STYLE,
        kind=plain(kind),
        heading=heading,
        more=paragraph(more),
        contents="".join(f"<li>{link(one.anchor, one.title)}</li>\n" for one in sections),
        sections="".join(
            f'<section aria-labelledby="{one.anchor}">\n'
            f'<h2 id="{one.anchor}">{one.title}</h2>\n{"".join(one.body)}</section>\n'
            for one in sections
        ),
    )


def in_frame(title: str, summary: str, html: str) -> str:
    """Return a page in a frame of its own for a notebook, so that neither styles the other."""
    style = "width:100%;height:46rem;border:1px solid #8888;border-radius:8px"
    return (
        f"<p>{plain(summary)}. <code>to_html()</code> is this page.</p>\n"
        # `sandbox` without values: no scripts run, whatever a name may hold.
        f'<iframe title="{plain(title)}" sandbox style="{style}" srcdoc="{escape(html)}">'
        "</iframe>\n"
    )
