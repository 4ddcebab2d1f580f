"""Scales with round ticks, and planes with two axes, whose labels never overlap or leave them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from shardctl.rendering.pictures.picture import (
    TEXT,
    WIDTH,
    Anchor,
    Label,
    Line,
    Mark,
    shortened,
    text_width,
)
from shardctl.rendering.text.quantities import short_count

GAP = 6.0  # between a mark and its label
LINE_HEIGHT = 18.0
_TICK = 4.0  # length of a mark at an axis
_LEAST_SPAN = 1e-9  # of an axis with more than one tick
_LABEL = TEXT + 2  # from there to the baseline of the labels below it
_MOST_NAMES = 0.4  # of the width


class Drawn(NamedTuple):
    """Marks, and the y below them where something else can begin."""

    marks: tuple[Mark, ...]
    bottom: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Numbers from `first` to `last` on a line from `start` to `end`; of one number, its start.

    >>> Scale(first=0, last=10, start=100, end=50).at(4)
    80.0
    """

    first: float
    last: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a number."""
        if self.first == self.last:
            return self.start
        part = (value - self.first) / (self.last - self.first)
        return self.start + part * (self.end - self.start)


class Tick(NamedTuple):
    """A number on an axis, and the text beside it."""

    value: float
    text: str


def round_ticks(
    first: float,
    last: float,
    *,
    most: int = 7,
    whole: bool = False,
) -> tuple[Tick, ...]:
    """Return round numbers between two, at most so many steps apart; `whole` ones where asked for.

    >>> [tick.text for tick in round_ticks(0, 1_281_167)]
    ['0', '200 k', '400 k', '600 k', '800 k', '1 M', '1.2 M']
    >>> [tick.text for tick in round_ticks(0, 0.6)]
    ['0.0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6']
    """
    low, high = min(first, last), max(first, last)
    if not _LEAST_SPAN <= high - low < math.inf:
        return (Tick(low, short_count(low)),)
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * by for by in (1, 2, 5, 10) if (high - low) / (power * by) <= most + 1e-9)
    if whole:
        step = max(round(step), 1)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    start, stop = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(number * step, digits) + 0.0 for number in range(start, stop + 1)]
    return tuple(
        Tick(value, f"{value:.{digits}f}" if digits else short_count(value)) for value in values
    )


def named_ticks(names: Iterable[str]) -> tuple[Tick, ...]:
    """Return ticks in the middle of places that have names, 0.5 for the first."""
    return tuple(Tick(number + 0.5, name) for number, name in enumerate(names))


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """An axis from one number to another, the first at the left or at the bottom.

    ticks: None for round ones. title: what the numbers are. grid: lines through the picture.
    """

    first: float
    last: float
    title: str = ""
    ticks: tuple[Tick, ...] | None = None
    whole: bool = False
    grid: bool = False

    def shown(self, most: int) -> tuple[Tick, ...]:
        """Return the ticks, at most so many steps of round ones; those between first and last."""
        if self.ticks is None:
            return round_ticks(self.first, self.last, most=most, whole=self.whole)
        low, high = min(self.first, self.last), max(self.first, self.last)
        return tuple(tick for tick in self.ticks if low <= tick.value <= high)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """A part of a picture with two axes: their scales, and the marks that come before the data."""

    x: Scale
    y: Scale
    marks: tuple[Mark, ...]
    bottom: float  # below the axis and its labels


def plane(
    x: Axis, y: Axis, *, top: float = 0, height: float = 160, left: float = 0, right: float = WIDTH
) -> Plane:
    """Return axes around a field that is `height` high, with room for all their labels.

    The title of the vertical axis stands above it, so nothing needs to be read sideways.
    """
    y_ticks = y.shown(most=5)
    names = [shortened(tick.text, (right - left) * _MOST_NAMES) for tick in y_ticks]
    start = left + max(map(text_width, names), default=0) + GAP + _TICK
    field_top = top + (LINE_HEIGHT + TEXT / 2 if y.title else TEXT / 2)
    x_scale = Scale(first=x.first, last=x.last, start=start, end=right)
    y_scale = Scale(first=y.first, last=y.last, start=field_top + height, end=field_top)
    marks: list[Mark] = []
    if y.title:
        marks.append(
            Label(x=left, y=top + TEXT - 1, text=shortened(y.title, right - left), quiet=True)
        )
    marks += _left(y_ticks, names, y_scale, start, right if y.grid else None)
    below = _below(x, x_scale, y_scale.start, left, right, field_top if x.grid else None)
    frame = ((start, field_top), (start, y_scale.start), (right, y_scale.start))
    marks += [*below.marks, Line(points=frame, role="axis")]
    return Plane(x=x_scale, y=y_scale, marks=tuple(marks), bottom=below.bottom)


def _left(
    ticks: Sequence[Tick], names: Sequence[str], scale: Scale, x: float, right: float | None
) -> list[Mark]:
    marks: list[Mark] = []
    places = [scale.at(tick.value) for tick in ticks]
    spans = [(place - TEXT * 0.6, place + TEXT * 0.6) for place in places]
    for at in thinned(spans):
        y = places[at]
        if right is not None:
            marks.append(Line(points=((x, y), (right, y)), role="grid"))
        marks.append(Line(points=((x - _TICK, y), (x, y)), role="axis"))
        marks.append(
            Label(x=x - _TICK - 2, y=y + TEXT * 0.35, text=names[at], anchor="end", quiet=True)
        )
    return marks


def _below(
    axis: Axis, scale: Scale, y: float, left: float, right: float, top: float | None
) -> Drawn:
    marks: list[Mark] = []
    ticks = axis.shown(most=7)
    names = [shortened(tick.text, (right - left) * _MOST_NAMES) for tick in ticks]
    labels = [
        _within(scale.at(tick.value), name, left, right)
        for tick, name in zip(ticks, names, strict=True)
    ]
    for at in thinned([span for span, _ in labels], apart=GAP):
        x = scale.at(ticks[at].value)
        _, (label_x, anchor) = labels[at]
        if top is not None:
            marks.append(Line(points=((x, y), (x, top)), role="grid"))
        marks.append(Line(points=((x, y), (x, y + _TICK)), role="axis"))
        marks.append(
            Label(x=label_x, y=y + _TICK + _LABEL, text=names[at], anchor=anchor, quiet=True)
        )
    bottom = y + _TICK + (LINE_HEIGHT + 2 if ticks else TEXT / 2)
    if axis.title:
        title = shortened(axis.title, right - left)
        marks.append(Label(x=right, y=bottom + TEXT - 1, text=title, anchor="end", quiet=True))
        bottom += LINE_HEIGHT
    return Drawn(tuple(marks), bottom)


def _within(
    x: float, text: str, left: float, right: float
) -> tuple[tuple[float, float], tuple[float, Anchor]]:
    """Return from where to where a label at x reaches, kept within the frame, and its anchor."""
    width = text_width(text)
    if x + width / 2 > right:
        return (right - width, right), (right, "end")
    if x - width / 2 < left:
        return (left, left + width), (left, "start")
    return (x - width / 2, x + width / 2), (x, "middle")


def thinned(spans: Sequence[tuple[float, float]], *, apart: float = 0) -> range:
    """Return which labels to show, every n-th, so that none reaches into the next one.

    >>> thinned([(0, 10), (8, 18), (16, 26), (24, 34)])
    range(0, 4, 2)
    """
    for step in range(1, len(spans) + 1):
        shown = sorted(spans[::step])
        if all(one[1] + apart <= next_[0] for one, next_ in pairwise(shown)):
            return range(0, len(spans), step)
    return range(len(spans))
