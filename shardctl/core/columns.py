"""Columns of rows: numbers, and texts that have a few forms and numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from shardctl.core.on_demand import OnDemand

if TYPE_CHECKING:  # documents ask for records, and NumPy is loaded where there are some
    from shardctl.core.arrays import Int64s

LONG = 1 << 12  # rows for which loading NumPy pays
_PIECE = 1 << 14  # rows made at once
HOLE = "\0"  # where a number goes in a form; no name holds it


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A column of numbers, as text with at least so many digits, in groups of three if `grouped`.

    >>> import numpy as np
    >>> Numbers(values=np.array([7, 1200]), num_digits=3).texts()
    ['007', '1200']
    """

    values: Int64s
    num_digits: int = 1
    grouped: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def tolist(self) -> list[int]:
        """Return the numbers."""
        numbers: list[int] = self.values.tolist()
        return numbers

    def texts(self) -> list[str]:
        """Return the numbers as text."""
        if self.num_digits == 1 and not self.grouped:
            return list(map(str, self.values.tolist()))
        sign = "," if self.grouped else ""
        return list(map(f"{{:0{self.num_digits}{sign}d}}".format, self.values.tolist()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Texts:
    r"""A column of texts: row i has form `which[i]`, with the numbers of its holes, from 0, put in.

    `which` is None where all have the first form. Every form has a HOLE for each of the holes.

    >>> import numpy as np
    >>> names = Texts(forms=["a-\0-of-2", "b-\0"], which=np.array([0, 1]),
    ...               holes=(Numbers(values=np.array([0, 1]), num_digits=2),))
    >>> names.tolist()
    ['a-00-of-2', 'b-01']
    """

    forms: Sequence[str]
    which: Int64s | None = None
    holes: tuple[Numbers, ...] = ()

    def __len__(self) -> int:
        return len(self.holes[0]) if self.which is None else len(self.which)

    def followed_by(self, form: str, *holes: Numbers) -> Texts:
        """Return the texts with another text after them."""
        forms = [before + form for before in self.forms]
        return Texts(forms=forms, which=self.which, holes=(*self.holes, *holes))

    def tolist(self) -> list[str]:
        """Return the texts."""
        if not len(self):
            return []
        if not self.holes:
            assert self.which is not None
            return list(map(self.forms.__getitem__, self.which.tolist()))
        # One format call over all of them.
        forms = [form.replace("%", "%%") for form in self.forms]
        for hole in self.holes:
            spec = "%s" if hole.grouped else f"%0{hole.num_digits}d"
            forms = [form.replace(HOLE, spec, 1) for form in forms]
        numbers = [hole.texts() if hole.grouped else hole.tolist() for hole in self.holes]
        if self.which is None:
            lines = f"{forms[0]}{HOLE}" * len(self)
        else:
            ended = [f"{form}{HOLE}" for form in forms]
            lines = "".join(map(ended.__getitem__, self.which.tolist()))
        return (lines % tuple(chain.from_iterable(zip(*numbers, strict=True)))).split(HOLE)[:-1]


def texts_of(texts: Iterable[str]) -> Texts:
    """Return texts as a column; those that are there several times are one form.

    >>> texts_of(["-", "7", "-"]).forms
    ['-', '7']
    """
    import numpy as np

    places: dict[str, int] = {}
    which = [places.setdefault(text, len(places)) for text in texts]
    return Texts(forms=list(places), which=np.array(which, np.int64))


Cell = Numbers | Texts | str | int | None  # a column, or the value of all rows


def cell_values(cell: Cell, count: int) -> Sequence[object]:
    """Return the values of a column of so many rows."""
    return cell.tolist() if isinstance(cell, Numbers | Texts) else [cell] * count


class RecordStream:
    """Mappings that all have these keys, as columns that are made piece by piece, from the first.

    `pieces` yields how many rows a piece has, and their columns in the order of the keys.
    """

    def __init__(
        self, fields: Sequence[str], pieces: Callable[[], Iterator[tuple[int, Sequence[Cell]]]]
    ) -> None:
        self.fields = tuple(fields)
        self.pieces = pieces

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the values of the mappings, one after the other."""
        for count, cells in self.pieces():
            yield from zip(*(cell_values(cell, count) for cell in cells), strict=True)


class Records(RecordStream, OnDemand[dict[str, Any]]):
    """Such mappings any of which can be made: `columns(start, stop)` are those of [start, stop).

    >>> import numpy as np
    >>> squares = Records(3, ("n", "square"), lambda start, stop: [
    ...     Numbers(values=np.arange(start, stop)), Numbers(values=np.arange(start, stop) ** 2)])
    >>> len(squares), squares[2]
    (3, {'n': 2, 'square': 4})
    """

    def __init__(
        self, size: int, fields: Sequence[str], columns: Callable[[int, int], Sequence[Cell]]
    ) -> None:
        def pieces() -> Iterator[tuple[int, Sequence[Cell]]]:
            for start in range(0, size, _PIECE):
                stop = min(start + _PIECE, size)
                yield stop - start, columns(start, stop)

        def rows(count: int, cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
            values = (cell_values(cell, count) for cell in cells)
            return (dict(zip(fields, row, strict=True)) for row in zip(*values, strict=True))

        RecordStream.__init__(self, fields, pieces)
        OnDemand.__init__(
            self,
            size,
            lambda index: next(rows(1, columns(index, index + 1))),
            lambda: chain.from_iterable(rows(*piece) for piece in pieces()),
        )
