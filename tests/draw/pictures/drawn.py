"""Pictures for tests, and an answer's pictures as lines of a terminal."""

from __future__ import annotations

from hypothesis import strategies as st

from shardctl.draw.drawers import picture_lines
from shardctl.draw.picture import Mark, Picture, words
from shardctl.draw.tables import Screen

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


def picture(*marks: Mark, text: str = "What is shown") -> Picture:
    """Return a picture of these marks, else of a line, every text of which is `text`."""
    marks = marks or (words(text),)
    return Picture(
        name="example", title=text, caption=text, marks=marks, warnings=(text,), note=text
    )


def drawn(answer: object, width: int | None = 80, *, color: bool = False) -> list[str]:
    """Return the pictures of an answer as lines of a terminal."""
    return "".join(picture_lines(answer, Screen(width=width, color=color))).splitlines()
