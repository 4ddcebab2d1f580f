"""Widths of text are upper bounds; sheets of pictures."""

from __future__ import annotations

import time

import pytest
from hypothesis import strategies as st

from shardctl.rendering.pictures.picture import (
    TEXT,
    WIDTH,
    Band,
    Box,
    Label,
    Line,
    moved,
    one_sheet,
    shortened,
    text_width,
    wrapped,
)
from tests.cases import check_cases
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, check_labels, picture

_ASCII = "".join(map(chr, range(32, 127)))


@pytest.mark.parametrize("bold", [False, True])
def test_no_text_is_wider_than_is_said_in_the_widest_font_of_pages(bold: bool) -> None:
    """DejaVu Sans, which matplotlib brings along: the width of each letter by the font itself."""
    manager = pytest.importorskip("matplotlib.font_manager")
    from matplotlib.ft2font import FT2Font, LoadFlags

    wanted = manager.FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    font = FT2Font(manager.findfont(wanted))
    font.set_size(1000, 72)
    for letter in _ASCII + "éÜß–—·×≥…µ→✓ЖΩ":
        glyph = font.load_char(ord(letter), flags=LoadFlags.NO_HINTING)
        width = glyph.linearHoriAdvance / 65536 / 1000 * TEXT
        assert width <= text_width(letter, bold=bold) + 0.01, letter


def test_a_text_is_as_wide_as_what_is_printed_of_it() -> None:
    assert text_width("\x1b") == text_width("\\x1b")
    assert text_width("a" * 5000) == pytest.approx(text_width("a" * 999 + "…"))


def test_what_is_cut_fits() -> None:
    def check(case: tuple[str, float]) -> None:
        text, width = case
        cut = shortened(text, width)
        assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
        assert text_width(cut) <= max(width, text_width("…"))

    check_cases(st.tuples(HOSTILE_TEXTS, st.floats(0, 300)), check, 100)


def test_long_texts_are_cut_at_once() -> None:
    start = time.perf_counter()
    assert len(shortened("i" * 10**6, 480)) < 110
    assert time.perf_counter() - start < 0.5


def test_lines_hold_every_word_and_fit() -> None:
    words = "one two three four five six seven eight nine ten"
    assert " ".join(wrapped(words, 100)) == words
    assert max(map(text_width, wrapped(words, 100))) <= 100
    assert wrapped("", 100) == []
    (line,) = wrapped("x" * 200, 100)
    assert line.endswith("…")


def test_marks_are_moved_whole() -> None:
    assert moved(Line(points=((0, 0), (1, 2))), 10, 20) == Line(points=((10, 20), (11, 22)))
    assert moved(Band(points=((0, 0),)), 1, 2) == Band(points=((1, 2),))
    assert moved(Label(x=1, y=2, text="a"), 1, 1) == Label(x=2, y=3, text="a")
    box = Box(x=1, y=2, width=3, height=4, title="t")
    assert moved(box, 1, 1) == Box(x=2, y=3, width=3, height=4, title="t")


def test_a_sheet_has_all_that_belongs_to_its_pictures_one_below_the_other() -> None:
    first = picture(Label(x=0, y=14, text="first"), text="Of one")
    second = picture(Label(x=0, y=14, text="second"), text="Of the other " * 20)
    sheet = one_sheet((first, second))
    said = [mark.text for mark in sheet.marks if isinstance(mark, Label)]
    assert said[:4] == ["Of one", "Of one", "first", "Of one"]
    assert " ".join(said).count("Of the other") == 3 * 20
    assert sheet.width == WIDTH + 32
    inside = [moved(mark, -16, 0) for mark in sheet.marks]
    check_labels(inside, sheet.height)
    assert one_sheet(()).marks == ()
