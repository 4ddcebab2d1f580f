"""Colours of text are told from what they stand on; nothing is fetched; paper is light."""

from __future__ import annotations

import re

import pytest

from shardctl.verbs.report.elements import STYLE
from tests.draw.pictures.colors import DARK, LIGHT

_LEAST = 4.5  # WCAG 2.2, 1.4.3: of text to its background


def colors(scheme: str) -> dict[str, str]:
    """Return the colours of the page by name, for light or dark."""
    light, dark = re.findall(r":root\{([^}]*)\}", STYLE)
    found = dict(re.findall(r"--([\w-]+):(#\w+)", {"light": light, "dark": dark}[scheme]))
    assert len(found) >= 12
    return found


@pytest.mark.parametrize(("scheme", "picture"), [("light", LIGHT), ("dark", DARK)])
def test_pictures_lie_on_what_the_page_has(scheme: str, picture: dict[str, str]) -> None:
    found = colors(scheme)
    inks = (picture["page"], picture["text"], picture["quiet"])
    assert (found["paper"], found["ink"], found["quiet"]) == inks


def luminance(color: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    digits = color[1:] if len(color) == 7 else "".join(sign * 2 for sign in color[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_told_from_what_it_stands_on(scheme: str) -> None:
    found = colors(scheme)
    for text in ("ink", "quiet", "link", "good", "warn", "bad"):
        for ground in ("paper", "panel"):
            assert contrast(found[text], found[ground]) >= _LEAST, (text, ground)
    for edge in ("good-edge", "warn-edge", "bad-edge"):
        assert contrast(found[edge], found["paper"]) >= 2.4


def test_the_style_asks_for_nothing_and_leaves_its_element_to_nobody() -> None:
    assert not re.search(r"url\(|@import|expression|</|<!", STYLE)
    assert STYLE.count("{") == STYLE.count("}")


def test_dark_is_for_screens_alone_and_paper_opens_what_is_folded() -> None:
    queries = re.findall(r"@media ([^{]*)\{", STYLE)
    assert all("screen and" in query for query in queries if "dark" in query)
    paper = STYLE[STYLE.index("@media print") :]
    assert "details::details-content{content-visibility:visible" in paper
