"""A picture of an answer as marks on lines: drawn once, for a terminal and for SVG.

Most marks are text: letters, and blocks that a terminal shows as they are and SVG as rectangles. So
an answer is laid out once, in columns. Nothing is said by a colour alone: there is a word, a place
or a number too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.by_name import named
from shardctl.base.text import printable
from shardctl.draw.tables import Look, Screen, display_width, paragraph, slot_styled, styled

OF_GROUPS = " A bar of several is solid up to the least of them, shaded up to the most."
FULL, SHADE = "█", "░"
EIGHTHS = "▏▎▍▌▋▊▉"  # of a column, from the left
NUM_LEVELS = 8  # of a heat map, from 1; 0 is an empty cell
EVEN = 3  # the level of a cell that is as that of a uniform permutation
_NOTHING = "There are no examples."
_GAP = "  "
_ALONE = 4  # columns of a bar that is alone, and of labels, at least
_LEAST_BAR = 8  # columns of a bar that is not alone
_SHADES = " ··░▒▒▓██"  # of the levels in a terminal
# Times what a uniform permutation shows, from which on a cell has the next level: what is around 1
# has one level, whatever chance does to it.
_STEPS = (0.0, 0.25, 0.6, 1.6, 2.5, 4.0, 8.0, 16.0)
_IN_A_CELL = 12  # examples on average, with less of which a uniform permutation is no even shade
_LEAST_CELLS = 4  # rows or columns
_COLUMNS_FIRST = 12  # that there are before rows become fewer
SIDES, GUTTER = ("first", "last"), 7  # names of the first row and the last, and their columns
_MOSTLY = 0.75  # of all cells, with which of one level a map looks even


@dataclass(frozen=True, kw_only=True, slots=True)
class Paper:
    """What a picture is drawn on: its columns, how many rows have one thing each, else groups."""

    width: int
    rows: int = 16
    groups: int = 8
    hues: int = 16

    def num_rows(self, number: int) -> int:
        """Return how many rows so many hosts or shards have: one each, or one for each group.

        >>> Paper(width=80).num_rows(16), Paper(width=80).num_rows(1000)
        (16, 8)
        """
        return number if number <= self.rows else self.groups


SHEET = Paper(width=60, rows=24, groups=16, hues=8)  # of SVG


class Span(NamedTuple):
    """Text and blocks of one look; `slot` is the hue of the ground on which they stand."""

    text: str
    look: Look = ""
    slot: int | None = None


Line = tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Heat:
    """A heat map of counts, int64[rows, columns], and what is written at its right end below."""

    counts: Int64s
    below: str

    def levels(self, rows: int, columns: int) -> Int64s:
        """Return levels of so many cells at most; fewer where there is little in each."""
        total = int(self.counts.sum())
        rows = min(rows, max(total // _IN_A_CELL // _COLUMNS_FIRST, _LEAST_CELLS))
        columns = min(columns, max(total // _IN_A_CELL // rows, _LEAST_CELLS))
        merged = self.counts
        for axis, most in enumerate((rows, columns)):
            number = min(most, self.counts.shape[axis])
            starts = np.arange(number) * self.counts.shape[axis] // number
            merged = np.add.reduceat(merged, starts, axis=axis)
        uniform = merged.sum(axis=1)[:, None] * (merged.sum(axis=0) / max(total, 1))
        times = merged / np.where(uniform > 0, uniform, 1.0)
        return np.where(merged > 0, np.searchsorted(_STEPS, times, side="right"), 0)

    @property
    def is_even(self) -> bool:
        """Whether it looks like that of a uniform permutation."""
        return bool((self.levels(*self.counts.shape) == EVEN).mean() > _MOSTLY)

    def lines(self, width: int) -> Iterator[Line]:
        """Yield it as shades, with a ruler below."""
        columns = width - GUTTER
        rows = min(max(columns // 6, 6), 12)  # lines are twice as high as columns are wide
        levels = self.levels(rows, columns)
        down, right = (
            np.arange(most) * found // most
            for most, found in zip((rows, columns), levels.shape, strict=True)
        )
        names = [SIDES[0], *[""] * (rows - 2), SIDES[1]]
        for name, row in zip(names, levels[down][:, right].tolist(), strict=True):
            shades = "".join(map(_SHADES.__getitem__, row))
            yield Span(f"{name:<{GUTTER - 1}}│", "quiet"), Span(shades)
        yield (Span(self.ruler(width), "quiet"),)

    def ruler(self, width: int) -> str:
        """Return the line below it."""
        return " " * GUTTER + f"0{self.below[-width:]:>{width - GUTTER - 1}}"


Mark = Line | Heat


def lines_of(mark: Mark, width: int) -> Iterable[Line]:
    """Return a mark as lines of text and blocks."""
    return (mark,) if isinstance(mark, tuple) else mark.lines(width)


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """A picture with all that belongs to it.

    title: what it shows. caption: a sentence on how to read it, for people who see their first.
    said: what it shows as one plain sentence, for those who do not see it.
    warnings: what is highlighted.
    """

    title: str
    caption: str
    said: str
    marks: tuple[Mark, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def alternative(self) -> str:
        """The title and what it shows, for those who do not see it."""
        return f"{self.title}. {self.said}"


def nothing(title: str) -> Picture:
    """Return the picture of an answer without examples."""
    return Picture(title=title, caption=_NOTHING, said=_NOTHING)


def words(*texts: str, look: Look = "") -> Line:
    """Return texts as one line."""
    return tuple(Span(text, look) for text in texts)


class Bar(NamedTuple):
    """What a bar shows: the least and the most of a group, their text, and a word where one is due.

    Of a host or a shard by itself the two are one.
    """

    least: float
    most: float
    text: str
    word: str = ""


class Series(NamedTuple):
    """Bars of one quantity, a bar a row, all on one scale from 0 to `full`, else to the most."""

    heading: str
    bars: Sequence[Bar]
    full: float = 0.0

    @property
    def text_width(self) -> int:
        """Columns of the widest value."""
        return max((display_width(bar.text) for bar in self.bars), default=0)

    @property
    def beside(self) -> int:
        """Columns that a bar has beside it, its longest word among them."""
        word = max((len(bar.word) + 1 for bar in self.bars if bar.word), default=0)
        return len(_GAP) + 1 + self.text_width + word


def differs(values: Int64s, *, exact: bool = False) -> bool:
    """Return whether bars of values differ: by a hundredth, which can be seen, or at all.

    >>> differs(np.array([714, 719])), differs(np.array([714, 719]), exact=True)
    (False, True)
    """
    return bool(np.ptp(values) > (0 if exact else values.max() // 100))


def bar_lines(
    heading: str, labels: Sequence[str], series: Sequence[Series], paper: Paper
) -> Iterator[Line]:
    """Yield a heading and a line for each label, with a bar of each series that there is room for.

    On a sheet the others follow below.

    >>> bars = [Bar(4, 4, "4"), Bar(2.5, 3.5, "2–3", "idle")]
    >>> for line in bar_lines("host", ["0", "1"], [Series("files", bars)], Paper(width=26)):
    ...     print("".join(span.text for span in line).rstrip())
    host  files
    0     ███████████   4
    1     ██████░░░░  2–3 idle
    """
    longest = max(paper.width - series[0].beside - _ALONE, _ALONE)
    names = [_cut(printable(name), longest) for name in (heading, *labels)]
    lead = max(map(display_width, names))
    fitting = max(
        (n for n in range(1, len(series) + 1) if _width(lead, series[:n], paper) >= _LEAST_BAR),
        default=1,
    )
    shown, width = series[:fitting], max(_width(lead, series[:fitting], paper), 1)
    rooms = [width + one.beside - len(_GAP) for one in shown]
    cells = [_padded(_cut(one.heading, room), room) for one, room in zip(shown, rooms, strict=True)]
    yield words(_GAP.join((_padded(names[0], lead), *cells)).rstrip(), look="bold")
    for row, name in enumerate(names[1:]):
        spans = [Span(_padded(name, lead))]
        for one in shown:
            spans += _bar_spans(one, row, width)
        yield tuple(spans)
    if fitting < len(series) and paper is SHEET:
        yield from bar_lines(heading, labels, series[fitting:], paper)


def _width(lead: int, series: Sequence[Series], paper: Paper) -> int:
    return (paper.width - lead - sum(one.beside for one in series)) // len(series)


def _bar_spans(series: Series, row: int, width: int) -> Iterator[Span]:
    least, most, text, word = series.bars[row]
    look: Look = "warning" if word else ""
    drawn = drawn_bar(least, most, series.full or max(bar.most for bar in series.bars), width)
    yield Span(_GAP)
    yield Span(drawn, look)
    yield Span(" " * (width - len(drawn) + 1 + series.text_width - display_width(text)))
    yield Span(f"{text} {word}" if word else text, look)
    yield Span(" " * (series.beside - len(_GAP) - 1 - series.text_width - len(word) - bool(word)))


def drawn_bar(least: float, most: float, full: float, width: int) -> str:
    """Return a bar in at most `width` columns, where `full` takes all of them.

    What is more than nothing has an eighth of a column at least.

    >>> drawn_bar(3, 3, 8, 4), drawn_bar(3, 5, 8, 4), drawn_bar(0, 0, 8, 4), drawn_bar(1, 1, 1e9, 4)
    ('█▌', '█░░', '', '▏')
    """
    if not full:
        return ""
    eighths, reach = (round(8 * width * (value / full)) for value in (least, most))
    eighths = max(eighths, 1 if least else 0)
    if reach <= eighths:
        return FULL * (eighths // 8) + EIGHTHS[: eighths % 8][-1:]
    return FULL * (eighths // 8) + SHADE * (math.ceil(reach / 8) - eighths // 8)


def _cut(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, width - 1).rstrip()}…"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


# Who draws an answer, and its pictures as lines of a terminal.

# The class of an answer -> its drawer, below `verbs`.
DRAWERS = {
    "Audit": "audit.view:audit_pictures",
    "Evaluation": "eval.view:eval_pictures",
    "HostsPlan": "hosts.view:hosts_pictures",
    "Layout": "layout.picture:layout_pictures",
    "LoaderComparison": "quality.picture:loaders_pictures",
    "Quality": "quality.picture:quality_pictures",
    "Simulation": "simulate.view:simulate_pictures",
}


def pictures_of(answer: object, paper: Paper = SHEET) -> tuple[Picture, ...]:
    """Return the pictures of an answer, none of one that has no drawer.

    >>> from shardctl.verbs.layout.answer import layout
    >>> [picture.title for picture in pictures_of(layout("mnist", "test"))]
    ['test in mnist:3.0.1: 1 shard']
    """
    drawer = DRAWERS.get(type(answer).__name__)
    found: tuple[Picture, ...] = ()
    return found if drawer is None else named(f"shardctl.verbs.{drawer}")(answer, paper)


def picture_lines(answer: object, screen: Screen, most: int | None = None) -> Iterator[str]:
    """Yield the first pictures of an answer as text, each with what to see in it."""
    width = screen.picture_width
    beside = Screen(width=width, color=screen.color)  # words are as wide as the pictures
    before = ""
    for number, picture in enumerate(pictures_of(answer, Paper(width=width))[:most]):
        yield "\n" * bool(number)
        if picture.caption != before:
            yield paragraph(picture.caption, beside)
        before = picture.caption
        for mark in picture.marks:
            for line in lines_of(mark, width):
                yield f"{_text(line, screen.color).rstrip()}\n"
        for warning in picture.warnings:
            yield paragraph(warning, beside, style="warning")


def _text(line: Line, color: bool) -> str:
    if not color:
        return "".join(span.text for span in line)
    return "".join(
        styled(text, look if text.strip() else "") if slot is None else slot_styled(text, slot)
        for text, look, slot in line
    )
