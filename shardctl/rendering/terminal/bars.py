"""Bars of eighth blocks, as lines of text: a row a host, a shard or a group of them.

A bar is full up to the least of its group and shaded up to the most, and begins at 0; its values
stand beside it. What is wrong is a word there, coloured where the screen is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardctl.rendering.text.tables import Look, Screen, display_width, paragraph, styled

_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_FULL, _SHADE = "█", "░"
_GAP = "  "
_LEAST_BAR = 4  # columns of a bar that is alone, below which the values are all there is
_LEAST_OF_SEVERAL = 8
_EACH = 16  # hosts or shards of which each has a row
_GROUPS = 8  # of more than that


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """What a bar shows: the least and the most of a group, their text, and a word where one is due.

    Of a host or a shard by itself the two are one.
    """

    least: float
    most: float
    text: str
    word: str = ""
    look: Look = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Bars of one quantity, a bar a row, all on one scale that begins at 0."""

    heading: str
    bars: Sequence[Bar]

    @property
    def text_width(self) -> int:
        """Columns of the widest value."""
        return max((display_width(bar.text) for bar in self.bars), default=0)

    @property
    def word_width(self) -> int:
        """Columns of the longest word, with the blank before it."""
        return max((len(bar.word) + 1 for bar in self.bars if bar.word), default=0)

    @property
    def beside(self) -> int:
        """Columns that a bar has beside it."""
        return len(_GAP) + 1 + self.text_width + self.word_width


def bar_lines(
    heading: str, labels: Sequence[str], series: Sequence[Series], screen: Screen
) -> Iterator[str]:
    """Yield a heading and a line for each label, with a bar of each series that there is room for.

    The first series is always shown; where not even its bars have room, as words.

    >>> bars = [Bar(least=4, most=4, text="4"), Bar(least=2.5, most=3.5, text="2–3", word="idle")]
    >>> files = Series(heading="files", bars=bars)
    >>> print("".join(bar_lines("host", ["0", "1"], [files], Screen(width=26))), end="")
    host  files
    0     ███████████   4
    1     ██████░░░░  2–3 idle
    """
    label_width = max(map(display_width, (heading, *labels)))
    fitting = _fitting(label_width, series, screen.picture_width)
    if not fitting:
        yield from _words(heading, labels, series[0], screen)
        return
    shown, width = fitting
    cells = [_Cell(one, width) for one in shown]
    line = _padded(heading, label_width) + "".join(cell.heading for cell in cells)
    yield f"{styled(line.rstrip(), 'bold' if screen.color else '')}\n"
    for row, label in enumerate(labels):
        line = _padded(label, label_width)
        line += "".join(cell.of(row, color=screen.color) for cell in cells)
        yield f"{line.rstrip()}\n"


def _fitting(
    label_width: int, series: Sequence[Series], limit: int
) -> tuple[Sequence[Series], int] | None:
    """Return as many of the series as fit side by side, and how wide their bars are."""
    for count in range(len(series), 0, -1):
        beside = label_width + sum(one.beside for one in series[:count])
        width = (limit - beside) // count
        if width >= (_LEAST_BAR if count == 1 else _LEAST_OF_SEVERAL):
            return series[:count], width
    return None


class _Cell:
    """The place of a series in a line: its bar, its value, its word."""

    def __init__(self, series: Series, width: int) -> None:
        self._series, self._width = series, width
        self._full = max((bar.most for bar in series.bars), default=0)

    @property
    def heading(self) -> str:
        room = self._width + self._series.beside - len(_GAP)
        return _GAP + _padded(self._series.heading[:room], room)

    def of(self, row: int, *, color: bool) -> str:
        bar = self._series.bars[row]
        drawn = drawn_bar(bar.least, bar.most, self._full, self._width)
        text = " " * (self._series.text_width - display_width(bar.text)) + bar.text
        blanks = " " * (self._width - len(drawn) + 1)
        look = bar.look if color else ""
        shown = f"{_GAP}{styled(drawn, look)}{blanks}{styled(text, look)}"
        if not self._series.word_width:
            return shown
        end = " " * (self._series.word_width - 1 - len(bar.word))
        return f"{shown} {styled(bar.word, look)}{end}"


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
        return _FULL * (eighths // 8) + _EIGHTHS[eighths % 8]
    return _FULL * (eighths // 8) + _SHADE * (math.ceil(reach / 8) - eighths // 8)


def _words(heading: str, labels: Sequence[str], series: Series, screen: Screen) -> Iterator[str]:
    for label, bar in zip(labels, series.bars, strict=True):
        word = f", {bar.word}" if bar.word else ""
        text = f"{heading} {label}: {bar.text} {series.heading}{word}"
        yield paragraph(text, beside(screen), style=bar.look)


def num_rows(number: int) -> int:
    """Return how many rows so many hosts or shards have: one each, or one for each group.

    >>> num_rows(16), num_rows(1000)
    (16, 8)
    """
    return number if number <= _EACH else _GROUPS


def beside(screen: Screen) -> Screen:
    """Return the screen of the words beside a picture, which are as wide as the picture is."""
    return Screen(width=screen.picture_width, color=screen.color)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


# A line of numbers under a picture in a terminal, each below the place that it is of.


def tick_line(ticks: Iterable[tuple[int, str]], width: int) -> str:
    """Return a line in which each text begins at its column, of those that have room there.

    A text that would leave the line moves to the left; one that would touch another is left out.

    >>> tick_line([(0, "0"), (4, "16"), (6, "24"), (18, "1,024")], 20)
    '0   16         1,024'
    """
    placed = [(min(column, width - len(text)), text) for column, text in ticks]
    line = ""
    for column, text in placed:
        if column >= len(line) + bool(line):
            line += " " * (column - len(line)) + text
    return line
