"""Long tables whose cells are columns: measured and written many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from shardctl.core.columns import HOLE, Cell, Numbers, Texts
from shardctl.core.on_demand import OnDemand

if TYPE_CHECKING:  # loads NumPy, which short tables do without
    from shardctl.core.arrays import Int64s
    from shardctl.files.rows_as_bytes import Part

_PIECE = 1 << 14  # rows written at once
_SHORT = 1000  # characters of a text of which nothing is cut, whatever its numbers are


class TextRows(OnDemand[Sequence[str]]):
    """Rows of text any of which can be made: `columns(start, stop)` are those of [start, stop).

    >>> import numpy as np
    >>> rows = TextRows(2000, lambda start, stop: ["a", Numbers(values=np.arange(start, stop))])
    >>> rows[1999]
    ('a', '1999')
    """

    __slots__ = ("columns",)

    def __init__(self, size: int, columns: Callable[[int, int], Sequence[Cell]]) -> None:
        def rows(start: int, stop: int) -> Iterator[tuple[str, ...]]:
            texts = (_texts(cell, stop - start) for cell in columns(start, stop))
            return zip(*texts, strict=True)

        super().__init__(
            size,
            lambda index: next(rows(index, index + 1)),
            lambda: chain.from_iterable(rows(*piece) for piece in self._pieces()),
        )
        self.columns = columns

    def pieces(self) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Yield how many rows a piece has, and their columns, one piece after the other."""
        return ((stop - start, self.columns(start, stop)) for start, stop in self._pieces())

    def _pieces(self) -> Iterator[tuple[int, int]]:
        size = len(self)
        return ((start, min(start + _PIECE, size)) for start in range(0, size, _PIECE))


def column_widths(
    rows: TextRows, shown: Callable[[str], str], width_of: Callable[[str], int]
) -> tuple[list[int], bool]:
    """Return how wide the widest cell of each column is, of rows of which there are some.

    And whether every row ends with a character that is no blank.
    """
    widths: list[int] = []
    all_end = True
    for _, cells in rows.pieces():
        here = (_most(cell, shown, width_of) for cell in cells)
        widths = list(map(max, widths, here)) if widths else list(here)
        all_end = all_end and _ends_in_text(cells[-1])
    return widths, all_end


def padded_rows(
    rows: TextRows,
    widths: Sequence[int],
    on_left: Sequence[bool],
    gap: str,
    shown: Callable[[str], str],
    width_of: Callable[[str], int],
) -> Iterator[str]:
    """Yield the lines of a table, many at once, as `shown` makes texts printable.

    The last column must be on the right, and every row end with text, as `column_widths` says.
    """
    from shardctl.files.rows_as_bytes import Choice, Padded, parts_of, rows_as_bytes

    for count, cells in rows.pieces():
        line: list[Part] = []
        for cell, width, left in zip(cells, widths, on_left, strict=True):
            line += [gap.encode()] if line else []
            if isinstance(cell, Numbers):
                line.append(Padded(parts=[cell], width=width, align="left" if left else "right"))
                continue
            even = _of_one_width(cell)
            parts = parts_of(even, lambda value: shown(str(value)))
            lacking = width - _widths(even, shown, width_of)
            blanks: Part
            if isinstance(lacking, int):
                blanks = b" " * lacking
            else:
                most = int(lacking.max(initial=0))
                blanks = Choice(entries=[b" " * n for n in range(most + 1)], which=lacking)
            line += [*parts, blanks] if left else [blanks, *parts]
        yield rows_as_bytes([*line, b"\n"], count).decode()


def _ends_in_text(cell: Cell) -> bool:
    if isinstance(cell, Numbers):
        return True
    texts = cell.forms if isinstance(cell, Texts) else [str(cell)]
    return all(text[-1:].strip(" ") for text in texts)


def _texts(cell: Cell, count: int) -> Sequence[str]:
    if isinstance(cell, Numbers):
        return cell.texts()
    return cell.tolist() if isinstance(cell, Texts) else [str(cell)] * count


def _of_one_width(cell: Cell) -> Cell:
    """Return a column in which texts of one form are equally wide, and none is cut."""
    if not isinstance(cell, Texts):
        return cell
    long = max(map(len, cell.forms), default=0) > _SHORT
    if not cell.holes or not (long or any(map(_is_uneven, cell.holes))):
        return cell
    import numpy as np

    return Texts(forms=cell.tolist(), which=np.arange(len(cell)))


def _is_uneven(hole: Numbers) -> bool:
    low, high = hole.values.min(initial=0), hole.values.max(initial=0)
    return bool(hole.grouped or low < 0 or high >= 10**hole.num_digits)


def _widths(
    cell: Cell, shown: Callable[[str], str], width_of: Callable[[str], int]
) -> int | Int64s:
    """Return the width of each text of a column that has no `Numbers`, or that of all."""
    if not isinstance(cell, Texts):
        return width_of(shown(str(cell)))
    zeros = ["0" * hole.num_digits for hole in cell.holes]
    forms = cell.forms if cell.which is not None else cell.forms[:1]
    widths = []
    for form in forms:
        filled = form
        for digits in zeros:
            filled = filled.replace(HOLE, digits, 1)
        widths.append(width_of(shown(filled)))
    if cell.which is None:
        return widths[0]
    import numpy as np

    found: Int64s = np.array(widths, np.int64)[cell.which]
    return found


def _most(cell: Cell, shown: Callable[[str], str], width_of: Callable[[str], int]) -> int:
    if not isinstance(cell, Numbers):
        widths = _widths(_of_one_width(cell), shown, width_of)
        return widths if isinstance(widths, int) else int(widths.max())
    # The least may have a sign, and the largest the most digits.
    ends = Numbers(
        values=cell.values[[cell.values.argmin(), cell.values.argmax()]],
        num_digits=cell.num_digits,
        grouped=cell.grouped,
    )
    return max(map(len, ends.texts()))
