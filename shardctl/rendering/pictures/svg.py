"""Pictures as SVG: a file that stands alone, and elements for a page that has the colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.text import inert, printable
from shardctl.rendering.pictures.palette import css
from shardctl.rendering.pictures.picture import (
    MOST_LETTERS,
    MOST_WORDS,
    NUM_LEVELS,
    NUM_SLOTS,
    Band,
    Box,
    Cells,
    Label,
    Line,
    Mark,
    Picture,
    one_sheet,
)

_PIXELS = 1.25  # of a file, for each unit


def svg_file(pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield one SVG that stands alone: the pictures below each other, with what is said of them.

    It brings colours for light and dark, and needs no font, script or network.
    """
    sheet = one_sheet(pictures)
    marks = "".join(map(_mark, sheet.marks))
    classes = {name for names in re.findall(r'class="([^"]*)"', marks) for name in names.split()}
    size = f'width="{_n(sheet.width * _PIXELS)}" height="{_n(sheet.height * _PIXELS)}"'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" {size} {_view(sheet)} '
        'role="img" aria-labelledby="title" aria-describedby="desc">\n'
        f'<title id="title">{escaped(sheet.title, MOST_WORDS)}</title>\n'
        f'<desc id="desc">{escaped(sheet.alternative, MOST_WORDS)}</desc>\n'
        f"<style>{css('.picture', classes=classes | {'page'})}</style>\n"
        '<rect class="page" width="100%" height="100%"/>\n'
    )
    yield marks
    yield "</svg>\n"


def svg_element(picture: Picture, ids: str | None = None) -> str:
    """Return a picture as an element of an HTML page whose style is that of `palette.css`.

    ids: what the ids of its title and description begin with, the picture's name where it is None.
    """
    name = escaped(picture.name if ids is None else ids)
    return (
        f'<svg class="picture" {_view(picture)} role="img" aria-labelledby="{name}-title" '
        f'aria-describedby="{name}-desc"><title id="{name}-title">{escaped(picture.title)}</title>'
        f'<desc id="{name}-desc">{escaped(picture.alternative, MOST_WORDS)}</desc>'
        f"{''.join(map(_mark, picture.marks))}</svg>"
    )


def escaped(text: str, most: int = MOST_LETTERS) -> str:
    """Return text for XML and HTML: no markup, no characters that are not shown, no CI commands.

    >>> escaped('<b>"\\x00')
    '&lt;b&gt;&quot;\\\\x00'
    """
    return escape(inert(printable(text, most)))


def _view(picture: Picture) -> str:
    return f'viewBox="0 0 {_n(picture.width)} {_n(picture.height)}"'


def _n(value: float) -> str:
    """Return a number with two digits behind the point at most.

    >>> _n(3.0), _n(0.256), _n(-0.001), _n(12.5)
    ('3', '.26', '0', '12.5')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    if text in ("-0", "0"):
        return "0"
    return text[1:] if text.startswith("0.") else text


def _mark(mark: Mark) -> str:
    if isinstance(mark, Label):
        return _label(mark)
    if isinstance(mark, Line):
        kind = f"{mark.role}-line" + (" dashed" if mark.dashed else "")
        return f'<path class="{kind}" d="{_path(mark.points)}"/>'
    if isinstance(mark, Band):
        return f'<path class="{mark.role}-band" d="{_path(mark.points)}z"/>'
    if isinstance(mark, Cells):
        return _cells(mark)
    place = f'x="{_n(mark.x)}" y="{_n(mark.y)}" width="{_n(mark.width)}" height="{_n(mark.height)}"'
    kind = "spot"
    if isinstance(mark, Box):
        kind = f"slot{mark.slot % NUM_SLOTS}" if mark.role == "slot" else mark.role
    if mark.width <= 0 or mark.height <= 0:
        return ""
    told = f"><title>{escaped(mark.title)}</title></rect>" if mark.title else "/>"
    return f'<rect class="{kind}" {place}{told}'


def _label(mark: Label) -> str:
    kind = "text" if mark.on_slot is None else f"on{mark.on_slot % NUM_SLOTS}"
    kind = "quiet" if mark.quiet and mark.on_slot is None else kind
    kind += " bold" if mark.bold else ""
    anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
    place = f'x="{_n(mark.x)}" y="{_n(mark.y)}"{anchor}'
    return f'<text class="{kind}" {place}>{escaped(mark.text)}</text>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return points as a path: the first as it is, the others as steps from where it is."""
    pieces = []
    at_x = at_y = 0.0
    for number, (x, y) in enumerate(points):
        # Steps are between rounded places, so that errors do not add up.
        step_x, step_y = round(x, 2) - at_x, round(y, 2) - at_y
        pieces.append(f"{'l' if number else 'M'}{_pair(step_x, step_y)}")
        at_x, at_y = round(x, 2), round(y, 2)
    return "".join(pieces)


def _pair(x: float, y: float) -> str:
    second = _n(y)
    return f"{_n(x)}{second}" if second.startswith("-") else f"{_n(x)} {second}"


def _cells(mark: Cells) -> str:
    """Return a heat map as a path a level, whose pieces are runs of cells of a row.

    A unit of the paths is a cell and their lines are as wide as one, which takes half as much text
    as rectangles do.
    """
    place = f"translate({_n(mark.x)} {_n(mark.y)})"
    scale = f"scale({mark.cell_width:.5g} {mark.cell_height:.5g})"
    paths = "".join(
        f'<path class="level{level}" d="{runs}"/>' for level, runs in _runs(mark.levels)
    )
    return f'<g class="cells" transform="{place}{scale}">{paths}</g>'


def _runs(levels: Int64s) -> Iterator[tuple[int, str]]:
    """Yield each level that occurs and its runs: a step to where one begins, and its length."""
    if not levels.size:
        return
    edges = np.ones((levels.shape[0], levels.shape[1] + 1), dtype=bool)
    edges[:, 1:-1] = levels[:, 1:] != levels[:, :-1]
    rows, starts = np.nonzero(edges[:, :-1])
    stops = np.nonzero(edges[:, 1:])[1] + 1
    values = levels[rows, starts]
    for level in range(1, NUM_LEVELS + 1):
        pieces: list[str] = []
        at_x, at_y = 0, 0
        of = values == level
        for y, x, stop in zip(*(part[of].tolist() for part in (rows, starts, stops)), strict=True):
            step = f"m{x - at_x} {y - at_y}" if pieces else f"M{x} {y + 0.5}"
            pieces.append(f"{step}h{stop - x}")
            at_x, at_y = stop, y
        if pieces:
            yield level, "".join(pieces)
