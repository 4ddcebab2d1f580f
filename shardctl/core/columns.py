"""Rows of answers as columns of Python values, made piece by piece: millions take no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from shardctl.core.on_demand import OnDemand

if TYPE_CHECKING:
    from shardctl.core.arrays import Int64s

LONG = 1 << 12  # rows for which loading NumPy pays
_PIECE = 1 << 14  # rows made at once

Cell: TypeAlias = "list[Any] | Int64s | str | int | None"  # a column, or the value of all rows


def rows_of(count: int, cells: Sequence[Cell]) -> Iterator[tuple[Any, ...]]:
    """Return so many rows of some columns.

    >>> list(rows_of(2, [[5, 7], "train"]))
    [(5, 'train'), (7, 'train')]
    """
    columns = (cell if isinstance(cell, list) else [cell] * count for cell in map(listed, cells))
    return zip(*columns, strict=True)


def listed(cell: Cell) -> list[Any] | str | int | None:
    """Return a column as a list, an array of one number as that number, a value as it is."""
    if cell is None or isinstance(cell, list | str | int):
        return cell
    return int(cell[0]) if len(cell) and (cell == cell[0]).all() else cell.tolist()


class Rows(OnDemand[tuple[Any, ...]]):
    """Rows any of which can be made: `columns(start, stop)` are those of [start, stop)."""

    def __init__(self, size: int, columns: Callable[[int, int], Sequence[Cell]]) -> None:
        self._columns = columns
        super().__init__(
            size,
            lambda index: next(rows_of(1, columns(index, index + 1))),
            lambda: chain.from_iterable(rows_of(*piece) for piece in self.pieces()),
        )

    def pieces(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Yield how many rows a piece has, and their columns."""
        return _pieces(len(self), self._columns)


def filled(texts: Sequence[str], count: int, cells: Sequence[list[Any] | str | int]) -> str:
    """Return so many rows as one text, made of one before each cell and one at the end of a row.

    >>> filled(["", ": ", "; "], 2, ["train", [5, 7]])
    'train: 5; train: 7; '
    """
    columns: list[list[Any]] = []
    row = _literal(texts[0])
    for cell, text in zip(cells, texts[1:], strict=True):
        if isinstance(cell, list):
            columns.append(cell)
            row += f"%s{_literal(text)}"
        else:
            row += _literal(f"{cell}{text}")
    return row * count % tuple(chain.from_iterable(zip(*columns, strict=True)))


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _pieces(
    size: int, columns: Callable[[int, int], Sequence[Cell]]
) -> Iterator[tuple[int, Sequence[Cell]]]:
    for start in range(0, size, _PIECE):
        stop = min(start + _PIECE, size)
        yield stop - start, columns(start, stop)


class RecordStream:
    """Mappings that all have these keys, as columns that are made piece by piece, from the first.

    `pieces` yields how many rows a piece has, and their columns in the order of the keys.
    """

    def __init__(
        self, fields: Sequence[str], pieces: Callable[[], Iterator[tuple[int, Sequence[Cell]]]]
    ) -> None:
        self.fields = tuple(fields)
        self.pieces = pieces

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the mappings, one after the other."""
        return chain.from_iterable(rows_of(*piece) for piece in self.pieces())


class Records(RecordStream, OnDemand[dict[str, Any]]):
    """Such mappings any of which can be made: `columns(start, stop)` are those of [start, stop).

    >>> squares = Records(3, ("n", "square"), lambda start, stop: [
    ...     list(range(start, stop)), [n * n for n in range(start, stop)]])
    >>> len(squares), squares[2]
    (3, {'n': 2, 'square': 4})
    """

    def __init__(
        self, size: int, fields: Sequence[str], columns: Callable[[int, int], Sequence[Cell]]
    ) -> None:
        def record(row: tuple[Any, ...]) -> dict[str, Any]:
            return dict(zip(fields, row, strict=True))

        rows = Rows(size, columns)
        RecordStream.__init__(self, fields, rows.pieces)
        OnDemand.__init__(self, size, lambda index: record(rows[index]), lambda: map(record, rows))
