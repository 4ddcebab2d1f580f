"""Seeds for a pipeline that names none, where any will do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardctl.core.settings.read_settings import ReadSettings


def with_stand_in_seeds(settings: ReadSettings) -> tuple[ReadSettings, dict[str, Any]]:
    """Return settings whose order is fixed, and what was assumed to fix it.

    >>> settings, assumed = with_stand_in_seeds(ReadSettings(shuffle_files=True, buffer=10))
    >>> assumed
    {'shuffle_seed': 1, 'buffer_seed': 2}
    """
    assumed: dict[str, Any] = {}
    if settings.shuffles_files and settings.shuffle_seed is None:
        if settings.global_seed is None:
            assumed["shuffle_seed"] = 1
        elif not settings.deterministic:
            assumed["deterministic"] = True
    if settings.deterministic is False:
        assumed["deterministic"] = True
    buffers = settings.buffer is not None and settings.buffer_seed is None
    if buffers and settings.global_seed is None:
        assumed["buffer_seed"] = 2
    return replace(settings, **assumed), assumed
