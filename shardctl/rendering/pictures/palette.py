"""The colours of pictures, by what they mean, for light and dark: one table for every format."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from shardctl.rendering.pictures.picture import TEXT, Role

FONTS = "system-ui,sans-serif"
BAND_OPACITY = 0.3  # of its role's colour, so that lines are seen through a band
LINE_WIDTHS: dict[Role, float] = {"axis": 1, "grid": 1}  # of others 2
DASHES = (5, 4)  # units of ink and of none


@dataclass(frozen=True, kw_only=True, slots=True)
class Palette:
    """The colours of one scheme, as "#rrggbb".

    page, text, quiet: what pictures lie on, text, and text of axes. slots: hues told apart by the
    colour-blind too, by how light they are. levels: of a heat map, from the empty cell, which is as
    the page, in even steps of lightness.
    """

    page: str
    text: str
    quiet: str
    roles: dict[Role, str]
    slots: tuple[str, ...]
    on_slots: tuple[str, ...]
    levels: tuple[str, ...]

    def color(self, role: Role, slot: int = 0) -> str:
        """Return the colour of marks of a role."""
        return self.slots[slot % len(self.slots)] if role == "slot" else self.roles[role]


_WHITE, _BLACK = "#ffffff", "#000000"

LIGHT = Palette(
    page="#ffffff",
    text="#1b1f24",
    quiet="#57606a",
    roles={
        "data": "#1f5fa8",
        "other": "#c26a00",
        "uniform": "#6e7781",
        "alarm": "#a8071a",
        "padding": "#8b949e",
        "axis": "#8b949e",
        "grid": "#e3e7eb",
    },
    slots=(
        *("#11438b", "#d06f16", "#037772", "#ac86af"),
        *("#4e8dfa", "#9c4f09", "#8145cb", "#4f3a37"),
    ),
    on_slots=(_WHITE, _BLACK, _WHITE, _BLACK, _BLACK, _WHITE, _WHITE, _WHITE),
    levels=(
        *("#ffffff", "#cde5fe", "#9dcafa", "#74afeb", "#5294d5"),
        *("#3979b7", "#2b5f91", "#254768", "#222f3d"),
    ),
)

DARK = Palette(
    page="#181818",
    text="#e8eaed",
    quiet="#a9b1ba",
    roles={
        "data": "#79b2f2",
        "other": "#f5bd7a",
        "uniform": "#b4bcc5",
        "alarm": "#f85149",
        "padding": "#7d8690",
        "axis": "#7d8690",
        "grid": "#32373d",
    },
    slots=(
        *("#4c8cfc", "#f8cc2b", "#39f2c3", "#cc8f9c"),
        *("#3765ba", "#ff6c1a", "#adb4fe", "#856e6b"),
    ),
    on_slots=(_BLACK, _BLACK, _BLACK, _BLACK, _WHITE, _BLACK, _BLACK, _WHITE),
    levels=(
        *("#181818", "#1a2f44", "#1d476f", "#256097", "#397bba"),
        *("#5696d6", "#7cb3ea", "#a9cff7", "#d9eafd"),
    ),
)


def css(scope: str, *, classes: Set[str] | None = None) -> str:
    """Return the style of pictures within a selector, light and dark.

    classes: those that occur, where others need no rule.

    >>> css(".a", classes={"page"})[-60:]
    'r-scheme:dark){.a{background:#181818}.a .page{fill:#181818}}'
    """
    dark = "".join(_colors(DARK, scope, classes))
    return (
        f"{scope}{{background:{LIGHT.page};font:{TEXT}px {FONTS};forced-color-adjust:none}}"
        f"{''.join(_shapes(scope, classes))}{''.join(_colors(LIGHT, scope, classes))}"
        f"@media screen and (prefers-color-scheme:dark){{{scope}{{background:{DARK.page}}}{dark}}}"
    )


def _shapes(scope: str, classes: Set[str] | None) -> Iterator[str]:
    """Yield the rules that are the same in light and dark."""
    rules = {
        "bold": "font-weight:bold",
        "dashed": f"stroke-dasharray:{DASHES[0]} {DASHES[1]}",
        "cells": "fill:none;shape-rendering:crispEdges",
        "spot": "fill-opacity:0",
    }
    for role in LIGHT.roles:
        width = f"stroke-width:{LINE_WIDTHS.get(role, 2)}"
        rules[f"{role}-line"] = f"fill:none;{width};stroke-linejoin:round"
        rules[f"{role}-band"] = f"fill-opacity:{BAND_OPACITY}"
    yield from _written(rules, scope, classes)


def _colors(palette: Palette, scope: str, classes: Set[str] | None) -> Iterator[str]:
    rules = {"page": palette.page, "text": palette.text, "quiet": palette.quiet}
    for role, color in palette.roles.items():
        rules |= {role: color, f"{role}-band": color}
    rules |= {f"slot{number}": color for number, color in enumerate(palette.slots)}
    rules |= {f"on{number}": color for number, color in enumerate(palette.on_slots)}
    yield from _written({name: f"fill:{color}" for name, color in rules.items()}, scope, classes)
    lines = {f"{role}-line": f"stroke:{color}" for role, color in palette.roles.items()}
    lines |= {f"level{number}": f"stroke:{color}" for number, color in enumerate(palette.levels)}
    yield from _written(lines, scope, classes)


def _written(rules: dict[str, str], scope: str, classes: Set[str] | None) -> Iterator[str]:
    for name, rule in rules.items():
        if classes is None or name in classes:
            yield f"{scope} .{name}{{{rule}}}"
