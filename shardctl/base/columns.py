"""Sequences and rows of answers that are made when they are asked for: millions take no memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from shardctl.base.arguments import checked
from shardctl.base.by_name import provided
from shardctl.base.text import in_short

if TYPE_CHECKING:
    from shardctl.base.arrays import Int64s


# Sequences whose items are made when they are asked for, so that a long one takes no memory.

Item = TypeVar("Item")
Other = TypeVar("Other")


class OnDemand(Sequence[Item]):
    """A sequence of `size` items; each is made anew whenever it is asked for, and not kept.

    `make_all` makes them one after the other, where that is quicker than one by one.

    >>> squares = OnDemand(1_000_000, lambda index: index**2)
    >>> len(squares), squares[-1], list(squares[2:4]), OnDemand(2, str) == ["0", "1"]
    (1000000, 999998000001, [4, 9], True)
    """

    __slots__ = ("_make", "_make_all", "_size")

    def __init__(
        self,
        size: int,
        make: Callable[[int], Item],
        make_all: Callable[[], Iterator[Item]] | None = None,
    ) -> None:
        self._size = size
        self._make = make
        self._make_all = make_all

    def map(self, function: Callable[[Item], Other]) -> OnDemand[Other]:
        """Return the sequence of what a function makes of each item.

        >>> list(OnDemand(3, str).map(len))
        [1, 1, 1]
        """
        return OnDemand(self._size, lambda i: function(self._make(i)), lambda: map(function, self))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._size)) if self._make_all is None else self._make_all()

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        places = range(self._size)[index]
        return self._make(places) if isinstance(places, int) else [self._make(i) for i in places]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list, and as long to compare

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[list[Item]]]:
        return tuple, (list(self),)  # another process gets the items, not what makes them

    def __deepcopy__(self, memo: object) -> OnDemand[Item]:
        return self  # nothing in it can be changed

    def __copy__(self) -> OnDemand[Item]:
        return self

    def __repr__(self) -> str:
        return f"<{self._size} items, made on demand>"


LONG = 1 << 12  # rows for which loading NumPy pays
_PIECE = 1 << 14  # rows made at once

Cell: TypeAlias = "list[Any] | Int64s | str | int | None"  # a column, or the value of all rows
Pieces: TypeAlias = "Iterator[tuple[int, Sequence[Cell]]]"


def rows_of(count: int, cells: Sequence[Cell]) -> Iterator[tuple[Any, ...]]:
    """Return so many rows of some columns.

    >>> list(rows_of(2, [[5, 7], "train"]))
    [(5, 'train'), (7, 'train')]
    """
    return zip(*(listed(cell, count) for cell in cells), strict=True)


def listed(cell: Cell, count: int) -> list[Any]:
    """Return a column as a list of so many values."""
    if cell is None or isinstance(cell, str | int):
        return [cell] * count
    return cell if isinstance(cell, list) else cell.tolist()


def shared(cell: Cell) -> Cell:
    """Return a column, or of an array with one number again and again that number."""
    if cell is None or isinstance(cell, list | str | int):
        return cell
    return int(cell[0]) if len(cell) and (cell == cell[0]).all() else cell


class RecordStream:
    """Mappings that all have these fields, as columns that are made piece by piece, from the first.

    `pieces` yields how many rows a piece has, and their columns in the order of the fields, which
    are given one by one or as words.
    """

    def __init__(self, fields: Sequence[str] | str, pieces: Callable[[], Pieces]) -> None:
        self.fields = tuple(fields.split() if isinstance(fields, str) else fields)
        self.pieces = pieces

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the mappings, one after the other."""
        return chain.from_iterable(rows_of(*piece) for piece in self.pieces())


def stream_of(fields: Sequence[str] | str, rows: Iterable[Sequence[Any]]) -> RecordStream:
    """Return rows with these fields as a stream of columns.

    >>> list(stream_of("n square", [(1, 1), (2, 4)]).pieces())
    [(2, [[1, 2], [1, 4]])]
    """

    def pieces() -> Pieces:
        waiting = iter(rows)
        while some := list(islice(waiting, _PIECE)):
            yield len(some), list(map(list, zip(*some, strict=True)))

    return RecordStream(fields, pieces)


class Records(RecordStream, OnDemand[dict[str, Any]]):
    """Such mappings any of which can be made: `columns(start, stop)` are those of [start, stop).

    >>> squares = Records(3, "n square", lambda start, stop: [
    ...     list(range(start, stop)), [n * n for n in range(start, stop)]])
    >>> len(squares), squares[2]
    (3, {'n': 2, 'square': 4})
    """

    def __init__(
        self, size: int, fields: Sequence[str] | str, columns: Callable[[int, int], Sequence[Cell]]
    ) -> None:
        def pieces() -> Pieces:
            for start in range(0, size, _PIECE):
                stop = min(start + _PIECE, size)
                yield stop - start, columns(start, stop)

        def record(row: tuple[Any, ...]) -> dict[str, Any]:
            return dict(zip(self.fields, row, strict=True))

        self.columns = columns
        RecordStream.__init__(self, fields, pieces)
        OnDemand.__init__(
            self,
            size,
            lambda index: record(next(rows_of(1, columns(index, index + 1)))),
            lambda: map(record, self.rows()),
        )


def records_of(fields: Sequence[str] | str, items: Sequence[Any]) -> Records:
    """Return what items have as attributes of two names or more, see `picked`.

    >>> records_of("real i=imag", [3, 1j])[0]
    {'real': 3, 'i': 0}
    """
    words = fields.split() if isinstance(fields, str) else fields
    names, _, paths = zip(*(word.partition("=") for word in words), strict=True)
    values = attrgetter(*(path or name for name, path in zip(names, paths, strict=True)))

    def columns(start: int, stop: int) -> list[Cell]:
        return list(map(list, zip(*map(values, items[start:stop]), strict=True)))

    found = Records(len(items), names, columns)
    found.pieces = lambda: stream_of(names, map(values, items)).pieces()
    return found


def numbered_records(fields: Sequence[str], columns: Sequence[Int64s | None]) -> Records:
    """Return records of their number, from 0, and of columns (int64[n]), the first of them known.

    >>> import numpy as np
    >>> numbered_records(["host", "examples", "bytes"], [np.array([5, 4]), None])[1]
    {'host': 1, 'examples': 4, 'bytes': None}
    """

    def cells(start: int, stop: int) -> list[Cell]:
        own: list[Cell] = [None if one is None else one[start:stop] for one in columns]
        return [list(range(start, stop)), *own]

    return Records(0 if columns[0] is None else len(columns[0]), fields, cells)


def picked(item: Any, fields: str) -> dict[str, Any]:
    """Return attributes of an item by their names, all None where there is no item.

    `name=path` is an attribute, or one of an attribute, under another name; of what is None it is
    None. A tuple is a list, and a record a mapping.

    >>> picked(1j, "real i=imag"), picked(None, "real")
    ({'real': 0.0, 'i': 1.0}, {'real': None})
    """
    found = {}
    for field in fields.split():
        name, _, path = field.partition("=")
        value = item
        for attribute in (path or name).split("."):
            value = None if value is None else getattr(value, attribute)
        found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if type(value) is tuple:
        return list(map(_plain, value))
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def record_of(item: Any, fields: str) -> dict[str, Any] | None:
    """Return what `picked` does, None where there is no item."""
    return None if item is None else picked(item, fields)


def filled(
    texts: Sequence[str],
    count: int,
    cells: Sequence[list[Any] | Int64s | str | int],
    widths: Sequence[int] | None = None,
) -> str:
    """Return so many rows as one text, made of one before each cell and one at the end of a row.

    Cells narrower than `widths` get blanks: texts behind them, numbers before them.

    >>> filled(["", ": ", "; "], 2, ["train", [5, 7]])
    'train: 5; train: 7; '
    """
    columns, row = [], texts[0].replace("%", "%%")
    for cell, width, text in zip(cells, widths or repeat(""), texts[1:], strict=False):
        if isinstance(cell, str | int):
            after = f"{cell:{width}}{text}"
        else:
            values = listed(cell, count)
            row += f"%{'-' if width and isinstance(values[0], str) else ''}{width}s"
            columns.append(values)
            after = text
        row += after.replace("%", "%%")
    return row * count % tuple(chain.from_iterable(zip(*columns, strict=True)))


# Answers as documents and as tables: what programs, files, notebooks and pandas get of them.


class Answer:
    """What a function returns, which the command of its name writes as a document."""

    def to_json(self) -> str:
        """Return the text that the command prints with `-f json`."""
        return "".join(provided("text")(self, "json"))

    def to_dict(self) -> dict[str, Any]:
        """Return what is in `to_json()` as dicts, lists, texts and numbers.

        >>> import shardctl
        >>> document = shardctl.plan("mnist", "train[:5]").to_dict()
        >>> document["kind"], document["plans"][0]["num_examples"]
        ('plan', 5)
        """
        import json

        found: dict[str, Any] = json.loads(self.to_json())
        return found

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file as the command does with `-o`, whole or not at all.

        Args:
            path: its ending chooses the format: .json, .yaml, .csv of answers with rows, .html of
                reports. Plans and snapshots are read back with `read_plan` and `read_snapshot`.

        Raises:
            UsageError: another ending, or the file cannot be written.
        """
        provided("save")(self, os.fspath(path))


class Tabular(Answer):
    """An answer with rows, those that the command line writes as CSV."""

    def __repr__(self) -> str:
        dataset, equal = getattr(self, "dataset", None), getattr(self, "equal", None)
        said = "" if equal is None else "equal" if equal else "differs"
        return in_short(self, "" if dataset is None else dataset.title, said)

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`, with the columns of the CSV.

        Raises:
            MissingDependencyError: pandas is not installed.

        >>> import shardctl
        >>> shardctl.layout("mnist").to_pandas()["num_examples"].sum()  # doctest: +SKIP
        70000
        """
        return provided("to_pandas")(self)

    def _repr_html_(self) -> str:
        html: str = provided("html")(self)
        return html
