"""Pictures in a notebook: above the table, of themselves alone, and never in the table's way."""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

import shardctl
from shardctl.draw.picture import DRAWERS
from tests.public_world import World

DRAWN: dict[str, Callable[[Any], Any]] = {
    "Evaluation": lambda d: shardctl.evaluate(d, "train", batch=5, hosts=2),
    "HostsPlan": lambda d: shardctl.hosts(d, "train", hosts=3),
    "Layout": shardctl.layout,
    "LoaderComparison": lambda d: shardctl.compare_loaders(d, "train[:50%]"),
    "Quality": lambda d: shardctl.quality(d, "train"),
    "Simulation": lambda d: shardctl.simulate(d, "train", {"batch": 4}),
}
KINDS = pytest.mark.parametrize("kind", DRAWN)
HOSTILE = "<script>alert('x')</script>\"\x1b[31m&amp;\u202e"


def image_of(html: str) -> ElementTree.Element:
    """The SVG of the one image of an answer, which stands before the table."""
    (source,) = re.findall(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)">', html)
    assert html.index("<img ") == 0
    assert html.count("<table>") == 1
    return ElementTree.fromstring(base64.b64decode(source))


@KINDS
def test_pictures_stand_above_the_table(kind: str) -> None:
    answer = DRAWN[kind]("mnist")
    assert type(answer).__name__ == kind
    html = answer._repr_html_()
    root = image_of(html)
    assert any(element.tag.endswith("}text") for element in root.iter())
    (said,) = re.findall(r'<img [^>]*alt="([^"]*)"', html)
    assert len(said) > 40


@KINDS
def test_no_name_in_a_picture_is_markup(kind: str) -> None:
    html = DRAWN[kind](replace(World().dataset, name=HOSTILE, config=HOSTILE))._repr_html_()
    image_of(html)
    assert "<script" not in html
    assert not re.search("[\x1b\u202e]", html)


@KINDS
def test_what_fails_to_draw_leaves_the_table(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, name = DRAWERS[kind].partition(":")
    drawer = importlib.import_module(f"shardctl.rendering.pictures.{module}")

    def broken(answer: Any) -> Any:
        raise ZeroDivisionError(answer)

    answer = DRAWN[kind]("mnist")
    whole = answer._repr_html_()
    monkeypatch.setattr(drawer, name, broken)
    table = answer._repr_html_()
    assert table.startswith("<table>")
    assert whole.endswith(table)
    monkeypatch.setattr(drawer, name, lambda answer: ())
    assert answer._repr_html_() == table


def test_answers_without_pictures_are_their_tables() -> None:
    assert shardctl.plan("mnist")._repr_html_().startswith("<table>")


def test_every_kind_is_tried() -> None:
    assert DRAWN.keys() == DRAWERS.keys()
