"""The elements of a page: text of others made harmless, sentences, tables that scroll, sections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real

from shardctl.core.text import printable
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.pictures.picture import Numbers, Picture
from shardctl.rendering.pictures.svg import escaped, svg_element
from shardctl.rendering.text.tables import Column

_LONGEST = 2000  # characters of a text of others
_WORDS = 120  # units that the words of a figure are high, about
_SHORT = 28  # letters of code that fit into a line of a telephone
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]+(?: (?:-?\d+|[A-Z]+(?:/[A-Z]+)?\b|auto\b))?)")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page: `anchor` is what links name, `title` is our own text, `body` HTML."""

    anchor: str
    title: str
    body: str


def plain(text: object) -> str:
    r"""Return text as HTML; nothing in it is markup, and what cannot be seen is an escape.

    What a CI runner reads as a command in its log, where a page may go, is spelt another way.

    >>> plain("<b> & \u202e"), plain("##[error]"), plain("::error::")
    ('&lt;b&gt; &amp; \\u202e', '&#35;&#35;[error]', '&#58;:error&#58;:')
    """
    html = escape(printable(str(text), _LONGEST))
    return html.replace("##", "&#35;&#35;").replace("::", "&#58;:")


def name(text: object) -> str:
    """Return a name that others gave, which is read in its own direction.

    >>> name("a<b")
    '<bdi>a&lt;b</bdi>'
    """
    return f"<bdi>{plain(text)}</bdi>"


def wrapping(text: object) -> str:
    """Return text as HTML that may go on in another line behind what joins its words.

    A text that is long, or of another alphabet, may be of others, and so is kept apart.

    >>> wrapping("read.shuffle_seed")
    'read.<wbr>shuffle_<wbr>seed'
    """
    html = re.sub(r"(?<=[a-z])[._/](?=[a-z])", r"\g<0><wbr>", plain(text))
    own = str(text).isascii() and len(str(text)) <= _SHORT
    return html if own else f"<bdi>{html}</bdi>"


def command(text: str) -> str:
    """Return a command line as a block, whose words stay whole where they are short."""
    words = (
        f'<span class="short">{plain(word)}</span>' if len(word) <= _SHORT else plain(word)
        for word in text.split(" ")
    )
    return f"<pre><code>{' '.join(words)}</code></pre>\n"


def code(text: object) -> str:
    """Return text to be typed, or that a file says; a short one is not broken."""
    shown = plain(text)
    kind = ' class="short"' if len(shown) <= _SHORT else ""
    return f"<code{kind}>{shown}</code>"


def sentence(text: object) -> str:
    """Return a sentence of an answer, in which options are code.

    >>> sentence("give --buffer-seed 1, not <none>")
    'give <code class="short">--buffer-seed 1</code>, not &lt;none&gt;'
    """
    parts = OPTION.split(str(text))
    return "".join(code(part) if at % 2 else plain(part) for at, part in enumerate(parts))


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
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, kind: str = ""
) -> str:
    """Return a table in a box that scrolls where the page is narrow; captions tell boxes apart.

    Cells are text, the first of a row its heading.
    """
    return cells_table(caption, columns, (list(map(wrapping, row)) for row in rows), kind=kind)


def cells_table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, kind: str = ""
) -> str:
    """Return a table as `table` does, of cells that are HTML."""
    sides = [' class="number"' if column.align == "right" else "" for column in columns]
    heads = "".join(
        f'<th scope="col"{side}>{plain(column.heading)}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    body = "".join(f"<tr>{_row(row, sides)}</tr>\n" for row in rows)
    return (
        f'<div class="scroll{" " * bool(kind)}{kind}" role="region" tabindex="0" '
        f'aria-label="{plain(caption)}">\n'
        f"<table><caption><span>{plain(caption)}</span></caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _row(row: Sequence[str], sides: Sequence[str]) -> str:
    first, *others = zip(row, sides, strict=True)
    told = f'<th scope="row"{first[1]}>{first[0]}</th>'
    return told + "".join(f"<td{side}>{cell}</td>" for cell, side in others)


def figures(pictures: Sequence[Picture]) -> str:
    """Return pictures side by side where there is room; one alone has its words beside it.

    More than two are two stacks of about one height, read one after the other.
    """
    shown = [figure(picture, f"picture-{picture.name}") for picture in pictures]
    if not shown:
        return ""
    kind = "figures alone" if len(shown) == 1 else "figures"
    if len(shown) > 2:
        kind, cut = "figures stacks", _middle([picture.height + _WORDS for picture in pictures])
        shown = [f"<div>{''.join(stack)}</div>\n" for stack in (shown[:cut], shown[cut:])]
    return f'<div class="{kind}">\n{"".join(shown)}</div>\n'


def _middle(heights: Sequence[float]) -> int:
    """Return how many come before the place that parts them most evenly."""
    return min(range(1, len(heights)), key=lambda at: abs(sum(heights[:at]) - sum(heights[at:])))


def folded(summary: str, html: str) -> str:
    """Return HTML that opens by a click or a key, under its summary, which is text."""
    return f"<details><summary>{plain(summary)}</summary>\n{html}</details>\n"


def not_shown(part: NotShown) -> str:
    """Return why a part of a report is not there, in its place."""
    return paragraph(f"<strong>Not shown:</strong> {sentence(part.reason)}", "not-shown")


def link(anchor: str, html: str) -> str:
    """Return a link to a place of the page."""
    return f'<a href="#{anchor}">{html}</a>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


# A picture as a figure of an HTML page: what to see, the picture, and its numbers as a table.


def figure(picture: Picture, ids: str | None = None) -> str:
    """Return a `<figure>` whose colours are those of `palette.css`.

    ids: what the ids in it begin with, the picture's name where it is None; no two figures of a
    page have the same.
    """
    name = picture.name if ids is None else ids
    note = f'<span class="note">{escaped(picture.note)}</span>' if picture.note else ""
    return (
        f'<figure class="picture-figure" id="{escaped(name)}"><figcaption>'
        f'<strong class="title">{escaped(picture.title)}</strong> '
        f'<span class="caption">{escaped(picture.caption)}</span> {note}</figcaption>'
        f"{svg_element(picture, name)}{_numbers(picture)}</figure>"
    )


def _numbers(picture: Picture) -> str:
    if not picture.numbers.rows:
        return ""
    return (
        f"<details><summary>The numbers of this picture</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(picture.title)}">'
        f"{_table(picture.numbers, picture.title)}</div></details>"
    )


def _table(numbers: Numbers, title: str) -> str:
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in numbers.headings)
    body = "".join(f"<tr>{''.join(map(_cell, range(len(row)), row))}</tr>" for row in numbers.rows)
    return (
        f"<table><caption>{escaped(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(number: int, value: object) -> str:
    if number == 0:
        return f'<th scope="row">{_said(value)}</th>'
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    kind = ' class="number"' if is_number else ""
    return f"<td{kind}>{_said(value)}</td>"


def _said(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return f"{float(value):,.6g}"
    return f"<bdi>{escaped(str(value))}</bdi>"
