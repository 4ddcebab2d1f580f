"""Colours that are told apart: contrasts as WCAG 2 counts them, by the colour-blind, on paper."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from shardctl.draw.picture import NUM_LEVELS, SHEET
from shardctl.draw.svg import STYLE
from shardctl.draw.tables import SLOT_LOOKS, slot_styled, styled
from tests.draw.drawn import DARK, LIGHT, contrast, linear

Colors = dict[str, str]
SCHEMES = pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])

# What is left of linear sRGB in full protanopia, deuteranopia and tritanopia: Machado, Oliveira and
# Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009).
SIGHT = {
    "all": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Björn Ottosson's OKLab, in which distances are about those that eyes see.
TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ np.clip(values, 0, 1)))


def distance(one: str, other: str, sight: str) -> float:
    seen = [oklab(np.asarray(SIGHT[sight]) @ linear(color)) for color in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def test_contrasts_are_counted_as_wcag_counts_them() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # WCAG's own example


@SCHEMES
def test_text_and_marks_stand_out(colors: Colors) -> None:
    slots = [f"slot{slot}" for slot in range(SHEET.hues)]
    assert contrast(colors["text"], colors["page"]) >= 7
    assert contrast(colors[f"level{NUM_LEVELS}"], colors["page"]) >= 7
    for name in ("quiet", "data", "alarm"):
        assert contrast(colors[name], colors["page"]) >= 4.5
    for slot, name in enumerate(slots):
        assert contrast(colors[name], colors[f"on{slot}"]) >= 4.5, slot
    for name in ("data", "padding", "alarm", *slots):
        assert contrast(colors[name], colors["page"]) >= 3, name


@SCHEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_hues_are_told_apart_by_the_colour_blind(colors: Colors, sight: str) -> None:
    for one, other in combinations(range(SHEET.hues), 2):
        apart = distance(colors[f"slot{one}"], colors[f"slot{other}"], sight)
        assert apart >= 0.1, (one, other)  # 0.02 is just seen
    for first, second in combinations(("data", "padding", "alarm"), 2):
        assert distance(colors[first], colors[second], sight) >= 0.08, (first, second)


@SCHEMES
def test_levels_rise_evenly_from_the_page(colors: Colors) -> None:
    levels = [colors["page"], *(colors[f"level{number}"] for number in range(1, NUM_LEVELS + 1))]
    steps = np.diff([oklab(linear(color))[0] for color in levels])
    assert abs(steps).min() >= 0.08
    assert np.allclose(steps, steps.mean(), rtol=0.05)


def test_light_and_dark_have_the_same_classes_and_no_rule_reaches_out_of_the_picture() -> None:
    assert LIGHT.keys() == DARK.keys()
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", STYLE.replace("@media screen and", ""))
    assert all(".picture" in selector for selector in selectors)
    assert STYLE.count("{") == STYLE.count("}")


# In a terminal: what is coloured is read on black and on white, and told apart without colours.

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


@pytest.mark.parametrize("terminal", PALETTES)
def test_every_colour_keeps_a_contrast_of_3_on_every_background(terminal: str) -> None:
    backgrounds, *colors = PALETTES[terminal]
    for color in colors:
        for background in backgrounds:
            # In reverse the two change places, and the contrast is the same.
            assert contrast(color, background) >= 3, (color, background)


def test_meanings_are_bold_and_differ() -> None:
    assert styled("x", "error") == "\x1b[1;91mx\x1b[0m"
    assert styled("x", "warning") == "\x1b[1;95mx\x1b[0m"
    assert styled("x", "bold") == styled("x", "notice") == "\x1b[1mx\x1b[0m"
    assert (styled("", "error"), styled("x", "quiet")) == ("", "\x1b[2mx\x1b[0m")


def test_sixteen_slots_have_sixteen_looks() -> None:
    assert len({slot_styled("x", slot) for slot in range(16)}) == 16
    assert slot_styled("x", 35) == slot_styled("x", 3)
    assert {code for look in SLOT_LOOKS for code in look} == {"1", "4", "7", "95"}


def test_without_colours_eight_looks_are_left_and_neighbours_differ() -> None:
    shapes = [frozenset(look) - frozenset(COLORS) for look in SLOT_LOOKS]
    assert len(set(shapes)) == 8
    assert all(shapes.count(shape) == 2 for shape in shapes)
    for slot, shape in enumerate(shapes):  # the last slot's neighbour is the first
        assert ("4" in shape) != ("4" in shapes[(slot + 1) % 16])  # one of them is underlined
