"""Bars, lying or upright, what colours mean, sentences: parts that several pictures have.

No two labels of one overlap, and none leaves the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shardctl.rendering.pictures.axes import GAP, LINE_HEIGHT, Drawn, Plane, Scale
from shardctl.rendering.pictures.picture import (
    NUM_LEVELS,
    TEXT,
    WIDTH,
    Band,
    Box,
    Cells,
    Label,
    Line,
    Mark,
    Role,
    shortened,
    text_width,
    wrapped,
)

ROW, BAR = 22.0, 14.0  # heights of a row, with the gap below, and of the bar in it
_SWATCH = 20.0
_MOST_NAMES, _MOST_TEXTS = 0.4, 0.3  # of the width


class Part(NamedTuple):
    """A part of a bar: how long, and what it is."""

    value: float
    role: Role = "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A bar of one part or several, with a name and its value as people read it.

    One that stands for several hosts or shards has a part up to the least of them, and one of the
    role "padding" from there to the greatest.
    """

    name: str
    parts: tuple[Part, ...]
    text: str = ""
    title: str = ""

    @property
    def value(self) -> float:
        """All parts together."""
        return sum(part.value for part in self.parts)


def bars(
    rows: Sequence[Bar],
    *,
    top: float = 0,
    full: float | None = None,
    expected: float | None = None,
    most_names: float = _MOST_NAMES,
) -> Drawn:
    """Return bars below each other, each with its name before it and its text behind it.

    full: the value of the longest bar there is room for, else the greatest one. expected: a value
    at which a dashed line stands. most_names: the part of the width that names take at most.
    """
    if not rows:
        return Drawn((), top)
    names = [shortened(row.name, WIDTH * most_names) for row in rows]
    texts = [shortened(row.text, WIDTH * _MOST_TEXTS) for row in rows]
    start = max(map(text_width, names), default=0) + GAP
    end = WIDTH - max(map(text_width, texts), default=0) - GAP
    reach = max([row.value for row in rows] + [expected or 0.0], default=0.0)
    scale = Scale(first=0, last=full or reach or 1.0, start=start, end=end)
    marks: list[Mark] = []
    for number, (row, name, text) in enumerate(zip(rows, names, texts, strict=True)):
        y = top + number * ROW
        marks.append(Label(x=start - GAP, y=y + TEXT - 1, text=name, anchor="end"))
        value = 0.0
        for part in row.parts:
            x = scale.at(value)
            width = scale.at(value + part.value) - x
            marks.append(
                Box(x=x, y=y + 1, width=width, height=BAR, role=part.role, title=row.title)
            )
            value += part.value
        at = max(scale.at(value), scale.at(expected) if expected is not None else 0.0)
        marks.append(Label(x=at + GAP, y=y + TEXT - 1, text=text, quiet=True))
    bottom, above = top + len(rows) * ROW, max(top - 2, 0.0)
    if expected is not None:
        x = scale.at(expected)
        marks.append(Line(points=((x, above), (x, bottom - 4)), role="uniform", dashed=True))
    marks.append(Line(points=((start, above), (start, bottom - 4)), role="axis"))
    return Drawn(tuple(marks), bottom)


def columns(on: Plane, rows: Sequence[Bar]) -> tuple[Mark, ...]:
    """Return upright bars on a plane, the first from 0 to 1 on its x axis; for many of them."""
    marks: list[Mark] = []
    for number, row in enumerate(rows):
        x, stop = on.x.at(number), on.x.at(number + 1)
        gap = min((stop - x) * 0.2, 3.0)
        value = 0.0
        for part in row.parts:
            bottom, y = on.y.at(value), on.y.at(value + part.value)
            marks.append(
                Box(
                    x=x + gap / 2,
                    y=y,
                    width=stop - x - gap,
                    height=bottom - y,
                    role=part.role,
                    title=row.title,
                )
            )
            value += part.value
    return tuple(marks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """What a colour means, of bars or, where it is set, of a line or a band."""

    text: str
    role: Role = "data"
    slot: int = 0
    line: bool = False
    dashed: bool = False
    band: bool = False


def legend(keys: Sequence[Key]) -> Drawn:
    """Return what colours and lines mean, side by side, in as many lines as it takes."""
    marks: list[Mark] = []
    x = y = 0.0
    for key in keys:
        text = shortened(key.text, WIDTH - _SWATCH - GAP)
        width = _SWATCH + GAP + text_width(text)
        if x > 0 and x + width > WIDTH:
            x, y = 0.0, y + LINE_HEIGHT
        if key.line:
            points = ((x, y + TEXT * 0.6), (x + _SWATCH, y + TEXT * 0.6))
            marks.append(Line(points=points, role=key.role, dashed=key.dashed))
        elif key.band:
            stop, bottom = x + _SWATCH, y + TEXT - 1
            corners = ((x, y + 2), (stop, y + 2), (stop, bottom), (x, bottom))
            marks.append(Band(points=corners, role=key.role))
        else:
            marks.append(
                Box(x=x, y=y + 2, width=_SWATCH, height=TEXT - 3, role=key.role, slot=key.slot)
            )
        marks.append(Label(x=x + _SWATCH + GAP, y=y + TEXT - 2, text=text, quiet=True))
        x += width + 2 * GAP
    return Drawn(tuple(marks), y + LINE_HEIGHT if keys else 0.0)


def sentences(lines: Iterable[str], *, top: float) -> Drawn:
    """Return sentences below each other, each on as many lines as it takes.

    >>> sentences(["host 3 is idle"], top=20).bottom
    44.0
    """
    marks: list[Mark] = []
    y = top
    for line in lines:
        for piece in wrapped(line, WIDTH):
            marks.append(Label(x=0, y=y + TEXT, text=piece))
            y += LINE_HEIGHT
    return Drawn(tuple(marks), y + GAP if marks else top)


def levels_key(low: str, high: str) -> Drawn:
    """Return the levels of a heat map in a row, between the words for the least and the most."""
    start = text_width(low) + GAP
    cells = Cells(
        x=start,
        y=2,
        cell_width=14,
        cell_height=TEXT - 3,
        levels=np.arange(NUM_LEVELS + 1, dtype=np.int64)[None, :],
    )
    end = start + 14 * (NUM_LEVELS + 1) + GAP
    y = TEXT - 2
    marks = (
        Label(x=0, y=y, text=low, quiet=True),
        cells,
        Label(x=end, y=y, text=high, quiet=True),
    )
    return Drawn(marks, LINE_HEIGHT)
