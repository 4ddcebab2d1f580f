"""Sparks: numbers from 0 to 1 as blocks of eighths, side by side in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = "▁▂▃▄▅▆▇█"


def sparks(values: Sequence[float], wide: int = 1) -> str:
    """Return a block for each number, each so many columns wide; the lowest one stands for 0 too.

    >>> sparks([0.0, 0.124, 0.126, 0.5, 0.99, 1.0]), sparks([0.5, 1.0], 2)
    ('▁▁▂▅██', '▅▅██')
    """
    levels = (min(max(int(value * len(_EIGHTHS)), 0), len(_EIGHTHS) - 1) for value in values)
    return "".join(_EIGHTHS[level] * wide for level in levels)
