"""Tables for people, laid out by Rich; text from outside enters as plain text, never as markup."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from shardctl.core.quoting import printable
from shardctl.rendering.screen import Screen

_UNBOUNDED = 100_000  # columns: wider than any row, so that a pipe gets every row on one line


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: its heading, and on which side its cells line up."""

    heading: str
    align: Literal["left", "right"] = "right"


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], screen: Screen) -> str:
    """Return a table as text, folded to the screen's width where it has one.

    >>> from shardctl.rendering.screen import PLAIN
    >>> print(table([Column(heading="file", align="left"), Column(heading="take")],
    ...             [["a-[v1]", "12"], ["b", "7"]], PLAIN), end="")
    file    take
    a-[v1]    12
    b          7
    """
    from rich.box import Box
    from rich.table import Table
    from rich.text import Text

    blank = Box("    \n" * 8)
    grid = Table(box=blank, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        grid.add_column(Text(column.heading, style="bold"), justify=column.align, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell, 10_000)) for cell in row))
    return _render(grid, screen)


def paragraph(text: str, screen: Screen, *, style: str = "") -> str:
    """Return a sentence or two as lines that fit the screen.

    >>> from shardctl.rendering.screen import Screen
    >>> print(paragraph("one two three", Screen(width=8)), end="")
    one two
    three
    """
    from rich.text import Text

    return _render(Text(printable(text, 100_000), style=style), screen)


def _render(renderable: object, screen: Screen) -> str:
    from rich.console import Console

    text = io.StringIO()
    console = Console(
        file=text,
        width=screen.width or _UNBOUNDED,
        force_terminal=screen.color,
        color_system="standard" if screen.color else None,
        no_color=not screen.color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(renderable, soft_wrap=False)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def elided(rows: Sequence[Sequence[str]], keep: int | None) -> list[Sequence[str]]:
    """Return the first and last rows with one row between that counts those left out.

    `keep` None keeps every row.

    >>> elided([["a"], ["b"], ["c"], ["d"]], 2)
    [['a'], ['… 2 more'], ['d']]
    """
    if keep is None or len(rows) <= keep + 1:
        return list(rows)
    head = keep - keep // 2
    tail = keep - head
    gap = [f"… {len(rows) - keep:,} more", *[""] * (len(rows[0]) - 1)]
    return [*rows[:head], gap, *rows[len(rows) - tail :]]
