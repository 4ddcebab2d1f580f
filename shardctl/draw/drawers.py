"""Who draws an answer, and its pictures as lines of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from shardctl.draw.picture import SHEET, Line, Paper, Picture, lines_of
from shardctl.draw.tables import Screen, paragraph, slot_styled, styled

# The class of an answer -> its verb, and its drawer in `picture.py` there.
DRAWERS = {
    "Evaluation": "eval:eval_pictures",
    "HostsPlan": "hosts:hosts_pictures",
    "Layout": "layout:layout_pictures",
    "LoaderComparison": "quality:loaders_pictures",
    "Quality": "quality:quality_pictures",
    "Simulation": "simulate:simulate_pictures",
}


def pictures_of(answer: object, paper: Paper = SHEET) -> tuple[Picture, ...]:
    """Return the pictures of an answer, none of one that has no drawer.

    >>> from shardctl.verbs.layout.answer import layout
    >>> [picture.title for picture in pictures_of(layout("mnist", "test"))]
    ['test in mnist:3.0.1: 1 shard']
    """
    module, _, name = DRAWERS.get(type(answer).__name__, "").partition(":")
    if not name:
        return ()
    drawer: Callable[[Any, Paper], tuple[Picture, ...]]
    drawer = getattr(import_module(f"shardctl.verbs.{module}.picture"), name)
    return drawer(answer, paper)


def picture_lines(answer: object, screen: Screen, most: int | None = None) -> Iterator[str]:
    """Yield the first pictures of an answer as text, each with what to see in it."""
    width = screen.picture_width
    beside = Screen(width=width, color=screen.color)  # words are as wide as the pictures
    before = ""
    for number, picture in enumerate(pictures_of(answer, Paper(width=width))[:most]):
        yield "\n" * bool(number)
        if picture.caption != before:
            yield paragraph(f"To see: {picture.caption}", beside)
        before = picture.caption
        for mark in picture.marks:
            for line in lines_of(mark, width):
                yield f"{_text(line, screen.color).rstrip()}\n"
        for warning in picture.warnings:
            yield paragraph(warning, beside, style="warning")


def _text(line: Line, color: bool) -> str:
    if not color:
        return "".join(span.text for span in line)
    return "".join(
        styled(text, look if text.strip() else "") if slot is None else slot_styled(text, slot)
        for text, look, slot in line
    )
