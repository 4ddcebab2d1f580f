"""A picture as marks in a frame: what every format of it is made of.

A picture is drawn once, in units of which `WIDTH` are its width and a letter is about `TEXT` high,
and `svg`, `png` and `figure` write it. So a mark says what it means (its role), and not a colour:
each of them has colours for light and dark. Nothing is said by a colour alone: there is a word, a
place or a number too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from shardctl.core.arrays import Int64s
from shardctl.rendering.text.tables import display_width

WIDTH = 480  # units; at 358 pixels, on a telephone, text is still 10 pixels high
TEXT = 14  # the size of text
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


def text_width(text: str, size: float = TEXT) -> float:
    """Return at most how many units a text is wide, in the fonts that pages are shown in.

    >>> round(text_width("host 12"), 1)
    63.7
    """
    return display_width(text) * size * 0.65
