"""A line of numbers under a picture in a terminal, each below the place that it is of."""

from __future__ import annotations

from collections.abc import Iterable


def tick_line(ticks: Iterable[tuple[int, str]], width: int) -> str:
    """Return a line in which each text begins at its column, of those that have room there.

    A text that would leave the line moves to the left; one that would touch another is left out.

    >>> tick_line([(0, "0"), (4, "16"), (6, "24"), (18, "1,024")], 20)
    '0   16         1,024'
    """
    placed = [(min(column, width - len(text)), text) for column, text in ticks]
    line = ""
    for column, text in placed:
        if column >= len(line) + bool(line):
            line += " " * (column - len(line)) + text
    return line
