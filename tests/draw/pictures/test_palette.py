"""Colours that are told apart: contrasts as WCAG 2 counts them, and by the colour-blind."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from shardctl.draw.picture import NUM_LEVELS, SHEET
from shardctl.draw.svg import STYLE
from tests.draw.pictures.colors import DARK, LIGHT

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
def test_text_stands_out(colors: Colors) -> None:
    assert contrast(colors["text"], colors["page"]) >= 7
    for name in ("quiet", "data", "alarm"):
        assert contrast(colors[name], colors["page"]) >= 4.5
    for slot in range(SHEET.hues):
        assert contrast(colors[f"slot{slot}"], colors[f"on{slot}"]) >= 4.5, slot


@SCHEMES
def test_marks_stand_out_from_the_page(colors: Colors) -> None:
    marks = ["data", "other", "padding", "alarm", "line", *(f"slot{n}" for n in range(SHEET.hues))]
    for name in marks:
        assert contrast(colors[name], colors["page"]) >= 3, name
    assert contrast(colors[f"level{NUM_LEVELS}"], colors["page"]) >= 7


@SCHEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_hues_are_told_apart_by_the_colour_blind(colors: Colors, sight: str) -> None:
    for one, other in combinations(range(SHEET.hues), 2):
        apart = distance(colors[f"slot{one}"], colors[f"slot{other}"], sight)
        assert apart >= 0.1, (one, other)  # 0.02 is just seen
    for first, second in combinations(("data", "other", "padding", "alarm"), 2):
        assert distance(colors[first], colors[second], sight) >= 0.08, (first, second)


@SCHEMES
def test_levels_rise_evenly_from_the_page(colors: Colors) -> None:
    levels = [colors["page"], *(colors[f"level{number}"] for number in range(1, NUM_LEVELS + 1))]
    lightness = [oklab(linear(color))[0] for color in levels]
    steps = np.diff(lightness)
    assert abs(steps).min() >= 0.08
    assert np.allclose(steps, steps.mean(), rtol=0.05)


def test_light_and_dark_have_the_same_classes_and_no_rule_reaches_out_of_the_picture() -> None:
    assert LIGHT.keys() == DARK.keys()
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", STYLE.replace("@media screen and", ""))
    assert all(".picture" in selector for selector in selectors)
    assert STYLE.count("{") == STYLE.count("}")
