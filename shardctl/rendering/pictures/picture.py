"""A picture as marks in a frame: what every format of it is made of.

A picture is drawn once, in units of which `WIDTH` are its width and a letter is about `TEXT` high,
and `svg` and `figure` write it. So a mark says what it means (its role), and not a colour:
each of them has colours for light and dark. Nothing is said by a colour alone: there is a word, a
place or a number too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from shardctl.core.arrays import Int64s
from shardctl.core.text import printable

WIDTH = 480  # units; at 358 pixels, on a telephone, text is still 10 pixels high
TEXT = 14  # the size of text
MOST_LETTERS = 1000  # of a text in a picture, which is cut there
MOST_WORDS = 10_000  # letters of the words for those who do not see it, of all pictures of a file
NUM_SLOTS = 8  # hues of slots; the ninth slot has the first again
NUM_LEVELS = 8  # of a heat map, from 1; 0 is an empty cell

# "data" is what is measured, "other" a second series; "uniform" what a uniform permutation shows;
# "alarm" what is wrong. "slot" marks have a number, and one of NUM_SLOTS hues.
Role = Literal["data", "other", "uniform", "alarm", "slot", "padding", "axis", "grid"]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A filled rectangle; `title` is shown where a pointer rests on it."""

    x: float
    y: float
    width: float
    height: float
    role: Role = "data"
    slot: int = 0
    title: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line through points (x, y); dashed lines are for what is expected or allowed."""

    points: tuple[tuple[float, float], ...]
    role: Role = "data"
    dashed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A filled polygon, as that of a spread around what is expected."""

    points: tuple[tuple[float, float], ...]
    role: Role = "uniform"


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Text whose baseline begins, is centred or ends at (x, y); quiet text is of axes.

    `on_slot` is the hue on which it stands, None where it stands on the page.
    """

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    quiet: bool = False
    bold: bool = False
    on_slot: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cells:
    """A heat map: `levels` (int64[rows, columns], 0 to NUM_LEVELS) in cells of one size."""

    x: float
    y: float
    cell_width: float
    cell_height: float
    levels: Int64s
    role: Role = "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A place without ink that tells something where a pointer rests on it."""

    x: float
    y: float
    width: float
    height: float
    title: str


Mark = Box | Line | Band | Label | Cells | Spot


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """The numbers of a picture as a table: headings, and rows of texts and numbers."""

    headings: tuple[str, ...]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """A picture with all that belongs to it.

    name: of it among others on a page, in letters and dashes.
    title: what it shows. caption: what to see in it, for people who see one for the first time.
    alternative: what this one shows, in words, for those who do not see it.
    note: what was left out or drawn at random, None where it is whole.
    height: of its frame, which is WIDTH wide; (0, 0) is the upper left.
    """

    name: str
    title: str
    caption: str
    alternative: str
    height: float
    marks: tuple[Mark, ...]
    numbers: Numbers
    note: str | None = None
    width: float = field(default=WIDTH)


# How wide letters are at most, as parts of the size of text: in DejaVu Sans, the widest of the
# fonts that pages are shown in.
_USUAL, _FOREIGN = 0.65, 1.1
_WIDTHS = {
    letter: width
    for width, letters in {
        0.34: " ',.Iijl|·",
        0.44: "!()-/:;[\\]frt",
        0.56: '"*?J_`csz',
        0.70: "ABEFKLPRSTVXYZ",
        0.84: "#&+<=>CDGHNOQU^~–×",
        1.02: "%@MWmw",
    }.items()
    for letter in letters
}
_BOLD = 1.125  # how much wider bold letters are


def text_width(text: str, *, bold: bool = False) -> float:
    """Return at most how many units a text is wide, in the fonts that pages are shown in.

    >>> round(text_width("host 12"), 1)
    55.2
    """
    widths = (
        _WIDTHS.get(letter, _USUAL if letter.isascii() else _FOREIGN)
        for letter in printable(text, MOST_LETTERS)
    )
    return sum(widths) * TEXT * (_BOLD if bold else 1)


def shortened(text: str, width: float, *, bold: bool = False) -> str:
    """Return a text that is at most so wide, cut where it is not.

    >>> shortened("a-name-without-end", 70), shortened("short", 70)
    ('a-nam…', 'short')
    """
    if text_width(text, bold=bold) <= width:
        return text
    room = width - text_width("…", bold=bold)
    for kept, letter in enumerate(text):
        room -= text_width(letter, bold=bold)
        if room < 0:
            return text[:kept] + "…"
    return text


_MARGIN = 16.0
_TITLE = 20.0  # from one baseline to the next
_SAID = 18.0
_APART = 22.0  # between two pictures


def one_sheet(pictures: Sequence[Picture]) -> Picture:
    """Return pictures below each other as one, each with its title, caption and note, for a file.

    The sheet has a margin, so it is wider than the pictures.
    """
    marks: list[Mark] = []
    y = _MARGIN
    for picture in pictures:
        y += 0 if y == _MARGIN else _APART
        for line in wrapped(picture.title, WIDTH, bold=True):
            marks.append(Label(x=_MARGIN, y=y + TEXT, text=line, bold=True))
            y += _TITLE
        for line in wrapped(picture.caption, WIDTH):
            marks.append(Label(x=_MARGIN, y=y + TEXT, text=line, quiet=True))
            y += _SAID
        y += 8
        marks += (moved(mark, _MARGIN, y) for mark in picture.marks)
        y += picture.height
        for line in wrapped(picture.note or "", WIDTH):
            marks.append(Label(x=_MARGIN, y=y + TEXT + 4, text=line, quiet=True))
            y += _SAID
    return Picture(
        name="sheet",
        title="; ".join(picture.title for picture in pictures),
        caption="",
        alternative=" ".join(picture.alternative for picture in pictures),
        height=y + _MARGIN,
        width=WIDTH + 2 * _MARGIN,
        marks=tuple(marks),
        numbers=Numbers(headings=(), rows=()),
    )


def moved(mark: Mark, x: float, y: float) -> Mark:
    """Return a mark moved by so much."""
    if isinstance(mark, Line | Band):
        return replace(mark, points=tuple((at_x + x, at_y + y) for at_x, at_y in mark.points))
    return replace(mark, x=mark.x + x, y=mark.y + y)


def wrapped(text: str, width: float, *, bold: bool = False) -> list[str]:
    """Return the lines of a text, each at most so wide; a word that is longer is cut.

    >>> wrapped("a few words to read", 80)
    ['a few', 'words to', 'read']
    """
    lines: list[str] = []
    for word in printable(text, MOST_LETTERS).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(word, width, bold=bold))
    return lines
