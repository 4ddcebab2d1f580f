"""Drawers that pages take, found when they are asked for; one that is not there draws nothing."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from shardctl.rendering.pictures.picture import Picture


def drawn(module: str, drawer: str, *answers: Any) -> tuple[Picture, ...]:
    """Return what a drawer of `rendering/pictures/` draws of answers."""
    try:
        found = importlib.import_module(f"shardctl.rendering.pictures.{module}")
    except ModuleNotFoundError:
        return ()
    pictures = getattr(found, drawer)(*answers)
    return tuple(pictures) if isinstance(pictures, Iterable) else (pictures,)
