"""Who draws an answer: the pictures of any answer that has some."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shardctl.rendering.pictures.picture import Picture

# The class of an answer -> its drawer, in `rendering.pictures`.
DRAWERS = {
    "Evaluation": "eval:eval_pictures",
    "HostsPlan": "hosts:hosts_pictures",
    "Layout": "layout:layout_pictures",
    "LoaderComparison": "loaders:loaders_pictures",
    "Quality": "shuffling:quality_pictures",
    "Simulation": "simulate:simulate_pictures",
}


def pictures_of(answer: object) -> tuple[Picture, ...]:
    """Return the pictures of an answer, none of one that has no drawer.

    >>> from shardctl.planning.layout import layout
    >>> [picture.title for picture in pictures_of(layout("mnist", "test"))]
    ['test in mnist:3.0.1: 1 shard']
    """
    module, _, name = DRAWERS.get(type(answer).__name__, "").partition(":")
    if not name:
        return ()
    drawer: Callable[[Any], tuple[Picture, ...]]
    drawer = getattr(import_module(f"shardctl.rendering.pictures.{module}"), name)
    return drawer(answer)
