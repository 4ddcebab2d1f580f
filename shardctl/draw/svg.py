"""Pictures as SVG: a file that stands alone, and elements for a page that has the style."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from shardctl.base.text import inert, printable
from shardctl.draw.picture import (
    EIGHTHS,
    FULL,
    GUTTER,
    NUM_LEVELS,
    SHADE,
    SHEET,
    SIDES,
    Heat,
    Line,
    Mark,
    Picture,
    words,
)
from shardctl.draw.tables import Screen, display_width, paragraph

MOST_LETTERS = 1000  # of a text in a picture, which is cut there
STYLE = Path(__file__).with_name("picture.css").read_text("utf-8")
_COLUMN, _LINE, _MARGIN = 8, 18, 16  # units: at 358 pixels, on a telephone, letters are 10 high
_WIDTH = SHEET.width * _COLUMN
_PIXELS = 1.25  # of a file, for each unit
_NUM_SLOTS = 8
_LETTERS = rf"[^\s{FULL}{EIGHTHS}{SHADE}]+"
_INK = re.compile(rf"([{FULL}{EIGHTHS}]+)|{SHADE}+|{_LETTERS}(?: {_LETTERS})*")


def svg_file(pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield one SVG that stands alone: the pictures below each other, with what is said of them.

    It brings colours for light and dark, and needs no font, script or network.
    """
    marks: list[Mark] = []
    for picture in pictures:
        marks += [(), *_wrapped(picture.title, "bold"), *_wrapped(picture.caption, "quiet")]
        marks += _body(picture)
    drawn, height = _drawn(marks[1:])
    width, height = _WIDTH + 2 * _MARGIN, height + 2 * _MARGIN
    size = f'width="{_n(width * _PIXELS)}" height="{_n(height * _PIXELS)}"'
    title = "; ".join(picture.title for picture in pictures)
    said = " ".join(picture.said for picture in pictures)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" {size} '
        f'viewBox="{-_MARGIN} {-_MARGIN} {_n(width)} {_n(height)}" '
        'role="img" aria-labelledby="title" aria-describedby="desc">\n'
        f'<title id="title">{escaped(title)}</title>\n'
        f'<desc id="desc">{escaped(said)}</desc>\n<style>{STYLE}</style>\n'
        f'<rect class="page" x="{-_MARGIN}" y="{-_MARGIN}" width="100%" height="100%"/>\n'
    )
    yield drawn
    yield "</svg>\n"


def svg_element(picture: Picture) -> str:
    """Return a picture as an element of an HTML page that has its style."""
    drawn, height = _drawn(_body(picture))
    return (
        f'<svg class="picture" viewBox="0 0 {_WIDTH} {_n(height)}" role="img" '
        f'aria-label="{escaped(picture.alternative)}">{drawn}</svg>'
    )


def escaped(text: str) -> str:
    """Return text for XML and HTML: no markup, no characters that are not shown, no CI commands.

    >>> escaped('<b>"\\x00')
    '&lt;b&gt;&quot;\\\\x00'
    """
    return escape(inert(printable(text, MOST_LETTERS)))


def _body(picture: Picture) -> Iterator[Mark]:
    yield from picture.marks
    for warning in picture.warnings:
        yield from _wrapped(warning)


def _wrapped(text: str, look: str = "") -> list[Line]:
    lines = paragraph(text, Screen(width=SHEET.width)).splitlines() if text else []
    return [words(line, look=look) for line in lines]  # type: ignore[arg-type]


def _drawn(marks: Iterable[Mark]) -> tuple[str, float]:
    """Return marks as SVG, and how high they are."""
    pieces: list[str] = []
    y = 0
    for mark in marks:
        if isinstance(mark, tuple):
            pieces += _line(mark, y)
            y += _LINE
        else:
            pieces += _heat(mark, y)
            y += 13 * _LINE
    return "".join(pieces), y


def _line(line: Line, y: float) -> Iterator[str]:
    """Yield the letters and blocks of a line, each run of them where its column is."""
    column = 0
    for raw, look, slot in line:
        text = printable(raw, MOST_LETTERS)
        width = display_width(text)
        if slot is not None:
            yield _box(f"slot{slot % _NUM_SLOTS}", column, y, width - 0.1)
        is_wrong = look in ("warning", "error")
        for run in _INK.finditer(text):
            found, at = run[0], column + display_width(text[: run.start()])
            if run[1]:
                eighths = sum(8 if block == FULL else EIGHTHS.index(block) + 1 for block in found)
                yield _box("alarm" if is_wrong else "data", at, y, eighths / 8)
            elif found[0] == SHADE:
                yield _box("padding", at, y, len(found))
            else:
                kind = "alarm bold" if is_wrong else look or "text"
                yield _text(f"on{slot % _NUM_SLOTS}" if slot is not None else kind, at, y, found)
        column += width


def _box(kind: str, column: float, y: float, width: float) -> str:
    return (
        f'<rect class="{kind}" x="{_n(column * _COLUMN)}" y="{_n(y + 2)}" '
        f'width="{_n(width * _COLUMN)}" height="{_LINE - 3}"/>'
    )


def _text(kind: str, column: float, y: float, text: str) -> str:
    kind = f"text {kind}" if kind == "bold" else kind
    return (
        f'<text class="{kind}" x="{_n(column * _COLUMN)}" y="{_n(y + 14)}">{escaped(text)}</text>'
    )


def _heat(mark: Heat, y: float) -> Iterator[str]:
    """Yield a heat map as a path a level, whose pieces are runs of cells of a row.

    A unit of the paths is a cell and their lines are as wide as one, which takes half as much text
    as rectangles do.
    """
    levels = mark.levels(*mark.counts.shape)
    for line, name in ((0, SIDES[0]), (11, SIDES[1]), (12, mark.ruler(SHEET.width))):
        yield from _line(words(name, look="quiet"), y + line * _LINE)
    left, (rows, columns) = GUTTER * _COLUMN, levels.shape
    edges = np.ones((rows, columns + 1), dtype=bool)
    edges[:, 1:-1] = levels[:, 1:] != levels[:, :-1]
    at, starts = np.nonzero(edges[:, :-1])
    lengths = np.nonzero(edges[:, 1:])[1] + 1 - starts
    yield (
        f'<g class="cells" transform="translate({left} {y})'
        f'scale({(_WIDTH - left) / columns:.5g} {12 * _LINE / rows:.5g})">'
    )
    for level in range(1, NUM_LEVELS + 1):
        of = levels[at, starts] == level
        runs = zip(*(part[of].tolist() for part in (starts, at, lengths)), strict=True)
        if of.any():
            path = "".join(f"M{x} {row}.5h{length}" for x, row, length in runs)
            yield f'<path class="level{level}" d="{path}"/>'
    yield "</g>"


def _n(value: float) -> str:
    """Return a number with two digits behind the point at most.

    >>> _n(3.0), _n(0.256), _n(-0.001), _n(12.5)
    ('3', '0.26', '0', '12.5')
    """
    return f"{round(value, 2) + 0.0:g}"
