"""Pictures for tests, and where the labels of one reach to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from shardctl.rendering.pictures.picture import (
    TEXT,
    WIDTH,
    Band,
    Label,
    Line,
    Mark,
    Numbers,
    Picture,
    text_width,
)

# Names as nobody hopes for them: markup, quotes, text from right to left, what XML cannot hold.
HOSTILE = (
    "<script>alert(1)</script>",
    "]]>&amp;<!--\"'",
    "\u202egnp.exe\u2066",
    "\x01\x1b[31m\x85\ufffe\uffff",
    "\ud800 alone \udfff",
    "$\\frac{1}{2}$ $x",
    "::error title=x::y ##[error]",
    "数据集 данные ✓",
)
HOSTILE_TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(), max_size=40))

Extent = tuple[float, float, float, float]  # left, top, right, bottom


def picture(
    *marks: Mark,
    text: str = "What is shown",
    height: float = 100,
    rows: Sequence[Sequence[object]] = (("a", 1),),
) -> Picture:
    """Return a picture of these marks, every text of which is `text`."""
    numbers = Numbers(headings=(text, text), rows=rows)
    return Picture(
        name="example",
        title=text,
        caption=text,
        alternative=text,
        note=text,
        height=height,
        marks=marks,
        numbers=numbers,
    )


def extents(marks: Iterable[Mark]) -> Iterator[Extent]:
    """Yield from where to where labels reach, at most."""
    for mark in marks:
        if isinstance(mark, Label):
            width = text_width(mark.text, bold=mark.bold)
            left = mark.x - {"start": 0, "middle": 0.5, "end": 1}[mark.anchor] * width
            yield left, mark.y - TEXT * 0.8, left + width, mark.y + TEXT * 0.25


def check_labels(marks: Iterable[Mark], bottom: float) -> None:
    """Assert that labels and lines are within the frame, and no label is on another."""
    marks = tuple(marks)
    for mark in marks:
        for x, y in mark.points if isinstance(mark, Line | Band) else ():
            assert -1e-6 <= x <= WIDTH + 1e-6
            assert -1e-6 <= y <= bottom + 1e-6, mark
    found = sorted(extents(marks))
    for number, (left, top, right, low) in enumerate(found):
        assert left >= -1e-6
        assert right <= WIDTH + 1e-6
        assert top >= -1e-6
        assert low <= bottom + 1e-6
        for other in found[number + 1 :]:
            apart = other[0] >= right - 1e-6 or other[1] >= low - 1e-6 or other[3] <= top + 1e-6
            assert apart, (found[number], other)
