"""Tables for people; text from outside is made printable, and never read as markup.

A table that is wider than the screen folds the cells of its left-aligned columns; one that would
still be too wide is written as a list of records. Either way every character is there. Where there
is no width, as in a pipe or a file, nothing is folded.

Rich measures and folds text; the layout is by hand. Rich's Table writes the same text into a pipe,
but 100,000 rows of a plan take it 35 s and 560 MB, and `table` 0.7 s and 100 MB; a plan of 11 rows
takes 28 ms longer with it. Rich's Text.wrap adds blank lines after words that fill their lines, and
before Rich 15 it loses combining characters that follow blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from shardctl.base.by_name import named
from shardctl.base.columns import Cell as RowsCell
from shardctl.base.columns import Records, filled, listed, shared
from shardctl.base.text import counted, inert, printable
from shardctl.draw.quantities import human_bytes

WIDEST_PICTURE = 80  # columns, which the eye takes in at once
_GAP = "  "
_ASCII = bytes(range(32, 127))  # that can be printed
_LONGEST_TEXT = 10_000  # characters of a cell on a terminal
_WHOLE = 1 << 60  # characters of one in a pipe or a file
_LEAST_WIDTH = 12  # columns a folded cell keeps, below which records read better


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """What the output can show: how many columns, colour, pictures, and of long tables how much.

    `width` is None where nothing may be cut or folded, as in a pipe or a file; where `abridged` is
    set, the first and last rows of a long table stand for all. Where `pictures` is set, tables have
    pictures of braille dots and blocks beside them, `picture_width` columns wide.
    """

    width: int | None = None
    color: bool = False
    abridged: bool = False
    pictures: bool = False

    @property
    def picture_width(self) -> int:
        """Columns of a picture; where nothing is cut, as many as a page has."""
        return WIDEST_PICTURE if self.width is None else min(self.width, WIDEST_PICTURE)


PLAIN = Screen()


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: its heading, and on which side its cells line up.

    Where the screen is narrow, cells on the left fold.
    `field` is what its cells say of a row, as a size in round figures where `sizes` is set, and
    with the look of an error where `wrong` is.
    """

    heading: str
    align: Literal["left", "right"] = "right"
    field: str = ""
    sizes: bool = False
    digits: str = ""
    wrong: bool = False


def columns(words: str) -> list[Column]:
    """Return columns: each a field of the rows, and its heading where that is another.

    A sign before it is `<` for text, `!` for what is wrong, `~` for sizes in bytes, a digit for so
    many decimals. Blanks of a heading are written `_`, and `_` is written twice.

    >>> [(column.field, column.heading) for column in columns("<path=file num_examples=first_id")]
    [('path', 'file'), ('num_examples', 'first id')]
    """
    found = []
    for word in words.split():
        named = word.lstrip("<!~0123456789")
        signs = word.removesuffix(named)
        field, _, heading = named.partition("=")
        found.append(
            Column(
                heading=(heading or field).replace("_", " ").replace("  ", "_"),
                align="left" if {*signs} & {*"<!"} else "right",
                field=field,
                sizes="~" in signs,
                digits=f".{signs}f" if signs.isdigit() else "",
                wrong="!" in signs,
            )
        )
    return found


def cells_of(columns: Sequence[Column], items: Iterable[Any]) -> list[list[str]]:
    """Return a row of cells for each item, of its attributes that the columns name.

    >>> cells_of(columns("real <imag"), [1000, None])
    Traceback (most recent call last):
    AttributeError: 'NoneType' object has no attribute 'real'
    >>> cells_of(columns("real <imag"), [1000])
    [['1,000', '0']]
    """
    return [
        [cell_of(attrgetter(column.field)(item), column) for column in columns] for item in items
    ]


def cell_of(value: object, column: Column) -> str:
    """Return a value as a cell: numbers grouped, what is not known as `-`, no text as nothing."""
    if isinstance(value, str):
        return Cell(value, "error") if column.wrong else value
    if column.sizes:
        return "unknown" if value is None else human_bytes(int(str(value)))
    if value is None:
        return "" if column.align == "left" else "-"
    return f"{value:,{column.digits}}"


def grouped(records: Records, columns: Sequence[Column]) -> Records:
    """Return records as cells of columns, the first of a row as it is."""

    def texts(cell: RowsCell, column: Column, count: int) -> list[str]:
        values = listed(cell, count)
        known = {value: cell_of(value, column) for value in set(values)}  # few are different
        return list(map(known.__getitem__, values))

    def cells(start: int, stop: int) -> list[Any]:
        first, *others = records.columns(start, stop)
        pairs = zip(others, columns[1:], strict=True)
        return [first, *(texts(cell, column, stop - start) for cell, column in pairs)]

    return Records(len(records), records.fields, cells)


class Cell(str):
    """The text of a cell that means something, and looks so where colour is shown."""

    __slots__ = ("look",)
    look: Look

    def __new__(cls, text: str, look: Look) -> Cell:
        """Return the text with its look; an empty look is that of any other text."""
        cell = super().__new__(cls, text)
        cell.look = look
        return cell


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    screen: Screen,
    *,
    keep: int | None = None,
) -> str:
    """Return a table as text, see `table_pieces`, folded to the screen's width where it has one.

    >>> from shardctl.draw.tables import PLAIN
    >>> columns = [Column(heading="file", align="left"), Column(heading="take")]
    >>> print(table(columns, [["a-[v1]", "12"], ["b", "7"]], PLAIN), end="")
    file    take
    a-[v1]    12
    b          7
    >>> print(table(columns, [["imagenet2012-train", "12"]], Screen(width=18)), end="")
    file          take
    imagenet2012    12
    -train
    """
    return "".join(table_pieces(columns, rows, screen, keep=keep))


def table_pieces(
    columns: Sequence[Column],
    rows: Records | Iterable[Sequence[str]],
    screen: Screen,
    *,
    keep: int | None = None,
) -> Iterator[str]:
    """Yield a table as text; of records there may be millions, whose text is never all kept.

    Of more than `keep` rows a screen that abridges gets the first and the last, and between them a
    line that counts the others.

    >>> columns, rows = [Column(heading="take")], [["1"], ["2"], ["3"], ["4"]]
    >>> print(table(columns, rows, Screen(width=80, abridged=True), keep=2), end="")
    take
       1
    … 2 more rows; --all shows them
       4
    """
    headings = [column.heading for column in columns]
    if isinstance(rows, Records):
        widths = None if screen.width or screen.color else _plain_widths(columns, rows)
        if widths is not None:
            yield f"{next(_row(headings, widths, columns))}\n"
            texts = ["", *[_GAP] * (len(columns) - 1), "\n"]
            for count, cells in rows.pieces():
                aligned = map(_aligned, cells, widths, columns)
                yield filled(texts, count, list(aligned), widths)
            return
        rows = rows.map(
            lambda record: [v if isinstance(v, str) else str(v) for v in record.values()]
        )
    shown, gap = _shown(rows, keep, screen)
    lines = [_cells(screen, row) for row in shown]
    widths = [max(map(display_width, texts)) for texts in zip(headings, *lines, strict=True)]
    fitting = _fitting(widths, columns, screen.width)
    if fitting is None:
        yield from _records(headings, lines, gap, screen)
        return
    for line in _row(headings, fitting, columns):
        yield f"{_styled(line, 'bold', screen)}\n"
    for number, row in enumerate(lines):
        if number == gap.before:
            yield paragraph(gap.text, screen)
        for line in _row(row, fitting, columns, color=screen.color):
            yield f"{line}\n"


def _plain_widths(columns: Sequence[Column], rows: Records) -> list[int] | None:
    """Return how wide columns are, None where a cell of the rows needs a look of its own."""
    widths = [len(column.heading) for column in columns]
    for _, cells in rows.pieces():
        for at, cell in enumerate(map(shared, cells)):
            texts: Any = [cell] if isinstance(cell, str | int) else cell
            kinds = set(map(type, texts)) if isinstance(texts, list) else {int}
            if kinds == {int} and columns[at].align == "right":
                texts = [str(min(texts)), str(max(texts))]
            elif kinds != {str} or not _is_plain("".join(texts := [*set(texts)])):
                return None
            widths[at] = max(widths[at], *map(len, texts))
            if "" in texts and at == len(columns) - 1:
                return None  # blanks at the ends of lines are for the slow way
    return None if columns[-1].align == "left" else widths


def _is_plain(text: str) -> bool:
    return text.isascii() and not text.encode().translate(None, _ASCII)


def _aligned(cell: RowsCell, width: int, column: Column) -> Any:
    """Return a column whose texts have blanks before them where they line up on the right."""
    if column.align == "left" or not isinstance(cell, str | list) or not isinstance(cell[0], str):
        return shared(cell)
    if isinstance(cell, str):
        return cell.rjust(width)
    known = {text: text.rjust(width) for text in set(cell)}
    return list(map(known.__getitem__, cell))


class _Gap(NamedTuple):
    """The line that stands for rows left out, and the row before which it stands."""

    text: str = ""
    before: int = -1


def _shown(
    rows: Iterable[Sequence[str]], keep: int | None, screen: Screen
) -> tuple[Iterable[Sequence[str]], _Gap]:
    """Return the rows that are shown; where some are left out, the first and the last half."""
    if keep is None or not screen.abridged:
        return rows, _Gap()
    rows = rows if isinstance(rows, Sequence) else list(rows)
    if len(rows) <= keep + 1:
        return rows, _Gap()
    tail = keep // 2
    shown = [*rows[: keep - tail], *rows[len(rows) - tail :]]
    return shown, _Gap(left_out(len(rows) - keep, "row", screen), keep - tail)


def left_out(count: int, noun: str, screen: Screen) -> str:
    """Return the line that counts what is left out; at a terminal it says how to see it.

    >>> left_out(1008, "row", Screen(width=80, abridged=True))
    '… 1,008 more rows; --all shows them'
    """
    line = f"… {counted(count, f'more {noun}')}"
    return line if screen.width is None else f"{line}; --all shows them"


def _cells(screen: Screen, row: Sequence[str]) -> list[str]:
    limit = _WHOLE if screen.width is None else _LONGEST_TEXT
    texts = ((cell, printable(str(cell), limit)) for cell in row)
    return [Cell(text, cell.look) if type(cell) is Cell else text for cell, text in texts]


def _fitting(
    widths: Sequence[int], columns: Sequence[Column], limit: int | None
) -> list[int] | None:
    """Return the widths with which the table fits, the widest left columns made narrower."""
    fitting = list(widths)
    excess = 0 if limit is None else sum(widths) + len(_GAP) * (len(widths) - 1) - limit
    folding = [index for index, column in enumerate(columns) if column.align == "left"]
    while excess > 0:
        folding = [index for index in folding if fitting[index] > _LEAST_WIDTH]
        if not folding:
            return None
        fitting[max(folding, key=fitting.__getitem__)] -= 1
        excess -= 1
    return fitting


def _row(
    cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column], *, color: bool = False
) -> Iterator[str]:
    """Yield the lines of a row, without blanks at their ends."""
    folded = [_folded(cell, width) for cell, width in zip(cells, widths, strict=True)]
    looks: list[Look] = [cell.look if color and type(cell) is Cell else "" for cell in cells]
    for pieces in zip_longest(*folded, fillvalue=""):
        padded = []
        for piece, width, column, look in zip(pieces, widths, columns, looks, strict=True):
            blanks = " " * (width - display_width(piece))
            shown = styled(piece, look)
            padded.append(shown + blanks if column.align == "left" else blanks + shown)
        yield _GAP.join(padded).rstrip()


def _records(
    headings: Sequence[str], rows: Iterable[Sequence[str]], gap: _Gap, screen: Screen
) -> Iterator[str]:
    """Yield each row as lines of `heading: cell`, cells without text left out."""
    if not rows:
        yield paragraph("  ".join(headings), screen)
    for number, row in enumerate(rows):
        if number:
            yield "\n"
        if number == gap.before:
            yield f"{paragraph(gap.text, screen)}\n"
        for heading, cell in zip(headings, row, strict=True):
            if cell:
                look = cell.look if type(cell) is Cell else ""
                yield paragraph(f"{heading}: {cell}", screen, style=look)


def paragraph(text: str, screen: Screen, *, style: Look = "") -> str:
    """Return a sentence or two as lines that fit the screen.

    >>> print(paragraph("one two three", Screen(width=8)), end="")
    one two
    three
    """
    limit = _WHOLE if screen.width is None else 10 * _LONGEST_TEXT
    lines = _wrapped(printable(text, limit), screen.width)
    return "".join(f"{_styled(line.rstrip(), style, screen)}\n" for line in lines)


def paragraphs(screen: Screen, *texts: str, style: Look = "") -> Iterator[str]:
    """Yield paragraphs, those without text left out."""
    return (paragraph(text, screen, style=style) for text in texts if text)


def pictures(answer: object, screen: Screen, most: int | None = None) -> Iterator[str]:
    """Yield the first pictures of an answer below a blank line, where the screen shows them."""
    if screen.pictures:  # else NumPy is not loaded
        yield "\n"
        yield from named("shardctl.draw.picture:picture_lines")(answer, screen, most)


def to_paste(said: str, command: str, screen: Screen) -> Iterator[str]:
    """Yield what a command is for, and the command alone on a line that nothing wraps."""
    yield paragraph(f"{said}:", screen)
    yield f"  {command}\n"


def indented(text: str, screen: Screen) -> Iterator[str]:
    """Yield a paragraph two columns farther right."""
    width = None if screen.width is None else max(screen.width - 2, 10)
    for line in paragraph(text, replace(screen, width=width)).splitlines():
        yield f"  {line}\n"


def _wrapped(text: str, limit: int | None) -> Iterator[str]:
    """Yield the lines of a text, broken between words, a word only where it is longer than one."""
    if limit is None or display_width(text) <= limit:
        yield text
        return
    line = ""
    for word in re.findall(r" *[^ ]+", text):
        if line and display_width(line + word) <= limit:
            line += word
            continue
        if line:
            yield line
        *full, line = _folded(word.lstrip(" ") if line else word, limit)
        yield from full
    yield line


def _folded(text: str, width: int) -> list[str]:
    """Return pieces of a text that are at most `width` columns wide."""
    if display_width(text) <= width:
        return [text]
    from rich.cells import chop_cells

    return chop_cells(text, width)


def display_width(text: str) -> int:
    """Return the columns a text takes on a terminal, where a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _styled(line: str, style: Look, screen: Screen) -> str:
    return styled(line, style) if screen.color else line


# How text looks where colour is shown: what it means, and sixteen slots told apart.
#
# Of the sixteen colours of a terminal only bright red (91) and bright magenta (95) stand out from
# black and from white alike: in the palettes of xterm, Windows, VS Code, GNOME, macOS and
# Solarized they keep a contrast of 3 (WCAG 2.1, what large text needs), which the test measures.
# Yellow falls to 1.1 and green and cyan to 1.3 on white, blue to 1.6 and plain red to 2.4 on
# black. Nothing is said by a look alone: there is a word, a mark or a number too.

Look = Literal["", "bold", "quiet", "error", "warning", "notice"]

WIDEST = 120  # columns of text to read, beyond which lines are hard to follow

_RED, _MAGENTA = "91", "95"
_BOLD, _DIM, _UNDERLINE, _REVERSE = "1", "2", "4", "7"

_CODES: dict[Look, tuple[str, ...]] = {
    "": (),
    "bold": (_BOLD,),
    "quiet": (_DIM,),
    "error": (_BOLD, _RED),
    "warning": (_BOLD, _MAGENTA),
    "notice": (_BOLD,),
}

# Sixteen slots: four marks, each plain and coloured, and these eight reversed. Without colours four
# marks are left, plain and reversed, and neighbours differ in theirs; no two slots differ in hue
# alone. Red is for what is wrong.
_MARKS: tuple[tuple[str, ...], ...] = ((), (_UNDERLINE,), (_BOLD,), (_BOLD, _UNDERLINE))

SLOT_LOOKS = tuple(
    (*mark, *reverse, *hue)
    for reverse in ((), (_REVERSE,))
    for hue in ((), (_MAGENTA,))
    for mark in _MARKS
)


def styled(text: str, look: Look) -> str:
    r"""Return text with a look, as escape codes.

    >>> styled("error:", "error"), styled("as it is", "")
    ('\x1b[1;91merror:\x1b[0m', 'as it is')
    """
    return _painted(text, _CODES[look])


def slot_styled(text: str, slot: int) -> str:
    r"""Return text with the look of a slot; from the seventeenth on they begin anew.

    >>> slot_styled("4 5", 1), slot_styled("4 5", 17), slot_styled("0 1", 0)
    ('\x1b[4m4 5\x1b[0m', '\x1b[4m4 5\x1b[0m', '0 1')
    """
    return _painted(text, SLOT_LOOKS[slot % len(SLOT_LOOKS)])


def _painted(text: str, codes: Iterable[str]) -> str:
    code = ";".join(codes)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


# Annotations that GitHub shows beside a line of a pull request.
#
# Source of the form and of what is escaped: actions/toolkit, core/src/command.ts.

Level = Literal["error", "warning", "notice"]


def annotation(
    level: Level, text: str, *, title: str, file: str | None = None, line: int | None = None
) -> str:
    r"""Return a workflow command that annotates a line of a file, or the run as a whole.

    >>> annotation("error", "one\ntwo", title="100%: differ", file="a,b.yaml", line=3)
    '::error file=a%2Cb.yaml,line=3,title=100%25%3A differ::one%0Atwo\n'
    >>> annotation("notice", "said", title="SC003")
    '::notice title=SC003::said\n'
    """
    properties = {"file": file, "line": None if line is None else str(line), "title": title}
    listed = ",".join(
        f"{name}={_property(value)}" for name, value in properties.items() if value is not None
    )
    return f"::{inert(f'{level} {listed}::{_data(text)}')}\n"


def _data(text: str) -> str:
    lines = text.replace("%", "%25").replace("\r", "%0D").split("\n")
    return "%0A".join(printable(line, 100_000) for line in lines)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
