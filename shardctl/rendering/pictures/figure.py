"""A picture as a figure of an HTML page: what to see, the picture, and its numbers as a table."""

from __future__ import annotations

from numbers import Integral, Real

from shardctl.rendering.pictures.formats.svg import escaped, svg_element
from shardctl.rendering.pictures.picture import Numbers, Picture


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
