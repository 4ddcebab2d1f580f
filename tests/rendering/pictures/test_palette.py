"""Colours that are told apart: contrasts as WCAG 2 counts them, and by the colour-blind."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from shardctl.rendering.pictures.palette import DARK, LIGHT, Palette, css
from shardctl.rendering.pictures.picture import NUM_LEVELS, NUM_SLOTS

SCHEMES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])

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


def linear(color: str) -> np.ndarray:
    values = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2, 1 to 21."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(linear(color) @ weights) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def oklab(values: np.ndarray) -> np.ndarray:
    """Björn Ottosson's OKLab, in which distances are about those that eyes see."""
    to_cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.asarray(np.array(to_lab) @ np.cbrt(np.array(to_cones) @ np.clip(values, 0, 1)))


def distance(one: str, other: str, sight: str) -> float:
    seen = [oklab(np.asarray(SIGHT[sight]) @ linear(color)) for color in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def test_contrasts_are_counted_as_wcag_counts_them() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # WCAG's own example


@SCHEMES
def test_text_stands_out(palette: Palette) -> None:
    assert contrast(palette.text, palette.page) >= 7
    assert contrast(palette.quiet, palette.page) >= 4.5
    for slot, ink in zip(palette.slots, palette.on_slots, strict=True):
        assert contrast(slot, ink) >= 4.5, slot


@SCHEMES
def test_marks_stand_out_from_the_page(palette: Palette) -> None:
    for role, color in palette.roles.items():
        if role != "grid":  # which helps the eye and says nothing
            assert contrast(color, palette.page) >= 3, role
    for color in palette.slots:
        assert contrast(color, palette.page) >= 3, color
    assert contrast(palette.levels[NUM_LEVELS], palette.page) >= 7


@SCHEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_hues_are_told_apart_by_the_colour_blind(palette: Palette, sight: str) -> None:
    assert len(palette.slots) == len(palette.on_slots) == NUM_SLOTS
    for one, other in combinations(palette.slots, 2):
        assert distance(one, other, sight) >= 0.1, (one, other)  # 0.02 is just seen
    drawn = [palette.roles[role] for role in ("data", "other", "padding", "alarm", "uniform")]
    for one, other in combinations(drawn, 2):
        assert distance(one, other, sight) >= 0.08, (one, other)


@SCHEMES
def test_levels_rise_evenly_from_the_page(palette: Palette) -> None:
    assert len(palette.levels) == NUM_LEVELS + 1
    assert palette.levels[0] == palette.page
    lightness = [oklab(linear(color))[0] for color in palette.levels]
    steps = np.diff(lightness)
    assert abs(steps).min() >= 0.08
    assert np.allclose(steps, steps.mean(), rtol=0.05)


def test_every_class_has_a_rule_and_no_rule_reaches_out_of_the_picture() -> None:
    style = css(".picture")
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", style.replace("@media screen and", ""))
    assert all(".picture" in selector for selector in selectors)
    for name in ("text", "quiet", "on7", "slot0", "level8", "data-line", "uniform-band", "spot"):
        assert f".picture .{name}{{" in style
    light, dark = style.split("@media screen and (prefers-color-scheme:dark)")
    assert LIGHT.roles["data"] in light
    assert DARK.roles["data"] in dark
    assert style.count("{") == style.count("}")


def test_only_rules_of_classes_that_occur_are_written() -> None:
    style = css(".picture", classes={"data"})
    assert ".picture .data{" in style
    assert ".other" not in style
    assert len(style) < 400
