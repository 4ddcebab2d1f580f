"""What is coloured can be read on black and on white, and told apart without colours."""

from __future__ import annotations

from itertools import combinations

import pytest

from shardctl.draw.tables import SLOT_LOOKS, slot_styled, styled

BLACK, WHITE = "000000", "ffffff"
# Of each terminal its backgrounds, its bright red (91) and its bright magenta (95): xterm's
# XTerm-col.ad, Windows Terminal's Campbell, VS Code's terminalColorRegistry.ts (dark and light),
# GNOME's Tango, macOS Terminal's Basic, Ethan Schoonover's Solarized, the VGA of the Linux console.
PALETTES = {
    "xterm": ((BLACK, WHITE), "ff0000", "ff00ff"),
    "campbell": (("0c0c0c", WHITE), "e74856", "b4009e"),
    "vscode-dark": (("1e1e1e", BLACK), "f14c4c", "d670d6"),
    "vscode-light": ((WHITE,), "cd3131", "bc05bc"),
    "tango": ((BLACK, WHITE), "ef2929", "ad7fa8"),
    "macos": ((BLACK, WHITE), "e50000", "e500e5"),
    "solarized": (("002b36", "fdf6e3"), "cb4b16", "6c71c4"),
    "vga": ((BLACK,), "ff5555", "ff55ff"),  # the console's background is black
}
COLORS = ("91", "95")


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2.1."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.1, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    assert contrast(BLACK, WHITE) == pytest.approx(21)
    assert contrast(WHITE, "767676") == pytest.approx(4.54, abs=0.01)  # the known grey at AA


@pytest.mark.parametrize("terminal", PALETTES)
def test_every_colour_keeps_a_contrast_of_3_on_every_background(terminal: str) -> None:
    backgrounds, *colors = PALETTES[terminal]
    for color in colors:
        for background in backgrounds:
            # In reverse the two change places, and the contrast is the same.
            assert contrast(color, background) >= 3, (color, background)


def codes_of(text: str) -> set[str]:
    return set(text.partition("m")[0].removeprefix("\x1b[").split(";")) - {""}


def test_nothing_else_is_used() -> None:
    used = {code for look in SLOT_LOOKS for code in look}
    for look in ("error", "warning", "notice", "bold"):
        used |= codes_of(styled("", look) or styled("x", look))
    assert used == {"1", "4", "7", *COLORS}


def test_meanings_are_bold_and_differ() -> None:
    said = {look: styled("x", look) for look in ("error", "warning", "bold")}
    assert said == {
        "error": "\x1b[1;91mx\x1b[0m",
        "warning": "\x1b[1;95mx\x1b[0m",
        "bold": "\x1b[1mx\x1b[0m",
    }
    assert styled("", "error") == ""


def test_sixteen_slots_have_sixteen_looks() -> None:
    assert len({slot_styled("x", slot) for slot in range(16)}) == 16
    assert [slot_styled("x", slot) for slot in range(16, 40)] == [
        slot_styled("x", slot % 16) for slot in range(16, 40)
    ]


def test_without_colours_eight_looks_are_left_and_neighbours_differ() -> None:
    shapes = [frozenset(look) - frozenset(COLORS) for look in SLOT_LOOKS]
    assert len(set(shapes)) == 8
    assert all(shapes.count(shape) == 2 for shape in shapes)
    for slot, shape in enumerate(shapes):  # the last slot's neighbour is the first
        assert ("4" in shape) != ("4" in shapes[(slot + 1) % 16])  # one of them is underlined


def test_two_slots_of_one_shape_differ_in_being_coloured_and_not_in_hue() -> None:
    for look, other in combinations(SLOT_LOOKS, 2):
        colors = [set(one) & set(COLORS) for one in (look, other)]
        if set(look) - set(COLORS) == set(other) - set(COLORS):
            assert sorted(map(len, colors)) == [0, 1]
