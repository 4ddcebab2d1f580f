"""Rows of cells in a format: what is the same in every row once, the rest as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shardctl.core.columns import HOLE, Cell, Numbers, Texts, cell_values
from shardctl.core.text import utf8
from shardctl.files.columns.rows_as_bytes import Choice, Part, rows_as_bytes

# Stands for a number where a form is written; its end is nowhere its beginning, so that it is
# found where it was put. Made longer where a form has it too.
_MARK = "1" + "0" * 19


@dataclass(frozen=True, kw_only=True)
class Writer:
    """How a format writes rows: what is before each cell, and after the last; one cell; a row.

    What `cell` makes of a text must not depend on the other texts of a row, unless one has
    characters that are not printable, or that runners of CI look for: then `row` is asked.
    """

    before: Sequence[str]
    after: str
    cell: Callable[[object], str]
    row: Callable[[Sequence[object]], str]


def written_rows(cells: Sequence[Cell], count: int, writer: Writer) -> bytes | bytearray:
    """Return so many rows, one after the other, as UTF-8."""
    if not all(map(_is_plain, cells)):
        values = [cell_values(cell, count) for cell in cells]
        return utf8("".join(map(writer.row, zip(*values, strict=True))))
    parts: list[Part] = []
    for before, cell in zip(writer.before, cells, strict=True):
        parts += [utf8(before), *parts_of(cell, writer.cell)]
    return rows_as_bytes([*parts, utf8(writer.after)], count)


def parts_of(cell: Cell, write: Callable[[object], str] = str) -> Sequence[Part]:
    """Return the parts of a cell as a function writes it; numbers are written as digits."""
    if isinstance(cell, Numbers):
        return [cell]
    if not isinstance(cell, Texts):
        return [utf8(write(cell))]
    forms = cell.forms if cell.which is not None else cell.forms[:1]
    written = [_pieces(form, write) for form in forms]
    parts: list[Part] = []
    for place, pieces in enumerate(zip(*written, strict=True)):
        if place:
            parts.append(cell.holes[place - 1])
        if cell.which is None or len(set(pieces)) == 1:
            parts.append(utf8(pieces[0]))
        else:
            parts.append(Choice(entries=list(map(utf8, pieces)), which=cell.which))
    return parts


def _pieces(form: str, write: Callable[[object], str]) -> list[str]:
    """Return what stands before, between and after the holes of a form when it is written."""
    mark = _MARK
    while len(pieces := write(form.replace(HOLE, mark)).split(mark)) != form.count(HOLE) + 1:
        mark += "0"
    return pieces


def _is_plain(cell: Cell) -> bool:
    if isinstance(cell, Texts):
        texts = " ".join(cell.forms).replace(HOLE, "0")
    else:
        texts = cell if isinstance(cell, str) else ""
    return texts.isprintable() and "##" not in texts and "::" not in texts
