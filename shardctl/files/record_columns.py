"""Long runs of records, a line each, as columns: those of counts as text, names as long texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardctl.core.dataset.packed_ints import PackedInts

if TYPE_CHECKING:
    from shardctl.core.arrays import Int64s
    from shardctl.core.instructions.named_files import JoinedNames


# A long list of counts in a text: known to be one, and no int of Python made of any.

MAX_DIGITS = 18  # more may be beyond int64
_COUNT = rb"(?:0|[1-9][0-9]{0,%d})" % (MAX_DIGITS - 1)
_COUNTS = re.compile(rb"%s(?:,%s)*+" % (_COUNT, _COUNT))
_BLANK = re.compile(rb"[ \t\r\n]")
_BEHIND_COMMA = re.compile(rb",[ \t\r\n]+")
_FEW = 1 << 16  # bytes, for which NumPy is not imported
_MAX_WAYS = 8  # of setting numbers apart, in one list


class CountsText:
    """A list of counts as it is written, `5,7,0`: checked, and converted where it is asked for."""

    __slots__ = ("_text",)
    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __init__(self, text: bytes) -> None:
        self._text = text

    @classmethod
    def of(cls, text: bytes) -> CountsText | None:
        """Return the list of a text without blanks, None where it holds anything else.

        >>> CountsText.of(b"5,7,0").ints(), CountsText.of(b"5,07"), CountsText.of(b"")
        ([5, 7, 0], None, None)
        """
        return cls(text) if _COUNTS.fullmatch(text) else None

    @classmethod
    def of_ints(cls, values: Iterable[object]) -> CountsText | None:
        """Return a list of values, None where one is no count or has too many digits."""
        items = list(values)
        if any(type(item) is not int or not 0 <= item < 10**MAX_DIGITS for item in items):
            return None
        return cls(",".join(map(str, items)).encode())

    @classmethod
    def joined(cls, lists: Iterable[CountsText]) -> CountsText:
        """Return lists one after the other."""
        return cls(b",".join([one._text for one in lists if one._text]))

    def __len__(self) -> int:
        return self._text.count(b",") + bool(self._text)

    def ints(self) -> list[int]:
        """Return the counts as ints."""
        numbers: list[int] = json.loads(b"[%s]" % self._text)
        return numbers

    def packed(self) -> PackedInts:
        """Return the counts in eight bytes each."""
        if len(self._text) < _FEW:
            return PackedInts(self.ints())
        import numpy as np

        return PackedInts.of_int64s(np.fromstring(self._text, np.int64, sep=","))


def without_blanks(body: bytes) -> bytes | None:
    r"""Return the text between the brackets of a list without the blanks that set items apart.

    Where it does not take one of few ways to set them apart it is None. Blanks within an item, or
    between two, stay, so that such a list is none of counts.

    >>> without_blanks(b"1, 2,\n   3"), without_blanks(b" 1 2,3 ")
    (b'1,2,3', None)
    """
    body = body.strip(b" \t\r\n")
    for _ in range(_MAX_WAYS):
        blank = _BLANK.search(body)
        if blank is None:
            return body
        comma = _BEHIND_COMMA.match(body, max(blank.start() - 1, 0))
        if comma is None:
            return None
        body = body.replace(comma[0], b",")
    return None


_PIECE = 1 << 17  # bytes worked on at once, which stay in the cache
_FIRST = 1 << 12  # and of a run that may be short
WORD = rb"[A-Za-z_/][A-Za-z0-9_./+-]*+"
# Words that are no texts to YAML 1.1.
NO_TEXT = frozenset({b"yes", b"no", b"on", b"off", b"true", b"false", b"null", b"y", b"n"})
_WORDS = re.compile(rb"%s(?:\n%s)*+" % (WORD, WORD))
_VALUE = rb'%s|"[^"\\\n]*"|(?:0|[1-9][0-9]{0,%d})' % (WORD, MAX_DIGITS - 1)
_FIELD = {
    False: re.compile(rb"([a-z_]+): ('[^'\n]*'|%s)(, |\})" % _VALUE),
    True: re.compile(rb'"([a-z_]+)": (%s)(, |\})' % _VALUE),
}
# Bytes that no UTF-8 has, so that they can stand between fields.
_BETWEEN = b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xc1\xc0"
_TEXT_BYTES = bytes(set(range(256)) - set(_BETWEEN))
_AS_LINES = bytes(range(256)).translate(bytes.maketrans(_BETWEEN, b"\n" * len(_BETWEEN)))


class TextColumn:
    """Texts as pieces of many: a text a line, or the one that all of a piece are."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Sequence[tuple[str, int]] = ()) -> None:
        self._pieces = list(pieces)

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> TextColumn | None:
        """Return texts of a line each, None where they hold what cannot be printed."""
        is_one = len(set(texts)) == 1
        try:
            text = (texts[0] if is_one else b"\n".join(texts)).decode()
        except UnicodeDecodeError:
            return None
        if not text.replace("\n", "").isprintable():
            return None
        return cls([(text, len(texts))])

    @classmethod
    def joined(cls, columns: Iterable[TextColumn]) -> TextColumn:
        """Return columns one after the other."""
        return cls([piece for column in columns for piece in column._pieces])

    def names(self) -> JoinedNames:
        """Return all of them."""
        from shardctl.core.instructions.named_files import JoinedNames

        return JoinedNames(
            [text if "\n" in text else "\n".join([text] * count) for text, count in self._pieces]
        )

    def coded(self) -> tuple[tuple[str, ...], Int64s]:
        """Return the distinct ones as they first appear, and int64[n]: which each is."""
        import numpy as np

        from shardctl.core.arrays import constant, joined_constants

        codes: dict[str, int] = {}
        parts = []
        for text, count in self._pieces:
            found = [codes.setdefault(one, len(codes)) for one in text.split("\n")]
            parts.append(
                constant(found[0], count) if len(found) == 1 else np.array(found, np.int64)
            )
        return tuple(codes), joined_constants(parts)


Column = CountsText | TextColumn | None


@dataclass
class RecordColumns:
    """Records of the same fields as columns; one of nothing is None.

    >>> columns = record_run(b"- {a: u, b: 1}\\n- {a: v, b: 2}\\n- {a: w, b: 3}\\n", 0)[0]
    >>> columns.names("a")[:], columns.counts("b").ints(), len(columns)
    (['u', 'v'], [1, 2], 2)
    """

    columns: Mapping[str, Column]
    size: int

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __len__(self) -> int:
        return self.size

    def counts(self, key: str) -> CountsText | None:
        """Return the column of a key where it is of counts."""
        column = self.columns.get(key)
        return column if isinstance(column, CountsText) else None

    def texts(self, key: str) -> TextColumn | None:
        """Return the column of a key where it is of texts."""
        column = self.columns.get(key)
        return column if isinstance(column, TextColumn) else None

    def names(self, key: str) -> Sequence[str]:
        """Return the texts under a key, none where there are no such."""
        column = self.texts(key)
        return () if column is None else column.names()

    def records(self) -> list[object]:
        """Return the records as mappings."""
        values = (
            [None] * self.size
            if column is None
            else column.ints()
            if isinstance(column, CountsText)
            else column.names()
            for column in self.columns.values()
        )
        keys = tuple(self.columns)
        return [dict(zip(keys, row, strict=True)) for row in zip(*values, strict=True)]

    def with_records(self, records: Sequence[object]) -> RecordColumns | None:
        """Return these and more at their end, None where one of them is of another kind."""
        added: dict[str, Column] = {}
        for key, column in self.columns.items():
            values = []
            for record in records:
                if not isinstance(record, dict) or tuple(record) != tuple(self.columns):
                    return None
                values.append(record[key])
            more = _more(column, values)
            if more is not None:
                added[key] = more
            elif any(value is not None for value in values) or column is not None:
                return None
            else:
                added[key] = None
        return RecordColumns(added, self.size + len(records))


def _more(column: Column, values: Sequence[object]) -> Column:
    """Return a column with values at its end, None where they are of another kind."""
    if isinstance(column, CountsText):
        counts = CountsText.of_ints(values)
        return None if counts is None else CountsText.joined((column, counts))
    if isinstance(column, TextColumn):
        try:
            texts = [value.encode() for value in values if isinstance(value, str)]
        except UnicodeEncodeError:
            return None
        more = TextColumn.of(texts)
        if len(texts) < len(values) or more is None or any(b"\n" in text for text in texts):
            return None
        return TextColumn.joined((column, more))
    return None


@dataclass(frozen=True)
class _Form:
    """How all records of a run are written: what stands before, between and behind their fields."""

    keys: tuple[str, ...]
    kinds: tuple[str, ...]  # "count", "none", "word", "text": quoted, without escapes
    before: bytes
    between: tuple[bytes, ...]
    to_next: bytes


def record_run(
    data: bytes, start: int, *, is_json: bool = False
) -> tuple[RecordColumns, int] | None:
    """Return the records from a line on that are written as the first is, and where they stop.

    There a line begins with one more record, or with what looks like one: the last of a list is
    left to who reads the rest. It is None where there are no two, or their form is another than
    those of our writers.
    """
    form = _form(data, start, is_json=is_json)
    if form is None:
        return None
    pieces: list[list[Column]] = []
    begin, size, is_near_end = start + len(form.before), _FIRST, False
    num_records = 0
    while True:
        end = data.rfind(form.to_next, begin, begin + size)
        piece = None if end < 0 else _piece(data[begin:end], form)
        if piece is None:  # a line of another form, or none any more
            is_near_end = True
            if size <= _FIRST:
                break
            size //= 2
            continue
        count, columns = piece
        num_records += count
        pieces.append(columns)
        begin = end + len(form.to_next)
        if not is_near_end:
            size = min(2 * size, _PIECE)
    if not pieces:
        return None
    whole = {
        key: _joined(parts) for key, parts in zip(form.keys, zip(*pieces, strict=True), strict=True)
    }
    return RecordColumns(whole, num_records), begin - len(form.before)


def _joined(parts: Sequence[Column]) -> Column:
    counts = [part for part in parts if isinstance(part, CountsText)]
    texts = [part for part in parts if isinstance(part, TextColumn)]
    return CountsText.joined(counts) if counts else TextColumn.joined(texts) if texts else None


def _form(data: bytes, start: int, *, is_json: bool) -> _Form | None:
    stop = data.find(b"\n", start, start + _FIRST)
    line = data[start : max(stop, start)]
    brace = line.find(b"{")
    lead = line[: brace + 1]
    if not re.fullmatch(rb" *\{" if is_json else rb" *- \{", lead):
        return None
    keys: list[str] = []
    kinds: list[str] = []
    openings: list[bytes] = []
    at = brace + 1
    while (found := _FIELD[is_json].match(line, at)) is not None:
        key, value, behind = found.groups()
        kind, quote = _kind(value, is_json=is_json)
        if kind is None or key in NO_TEXT or key.decode() in keys:
            return None
        keys.append(key.decode())
        kinds.append(kind)
        openings.append(found[0][: found.start(2) - found.start()] + quote)
        at = found.end()
        if behind == b"}":
            break
    else:
        return None
    if line[at:] != (b"," if is_json else b"") or len(keys) > len(_BETWEEN):
        return None
    closings = [opening[-1:] if opening[-1:] != b" " else b"" for opening in openings]
    before = lead + openings[0]
    return _Form(
        keys=tuple(keys),
        kinds=tuple(kinds),
        before=before,
        between=tuple(
            closing + b", " + opening
            for closing, opening in zip(closings, openings[1:], strict=False)
        ),
        to_next=closings[-1] + b"}" + line[at:] + b"\n" + before,
    )


def _kind(value: bytes, *, is_json: bool) -> tuple[str | None, bytes]:
    if value[:1] in (b'"', b"'"):
        return "text", value[:1]
    if value[:1].isdigit():
        return "count", b""
    if value == b"null":
        return "none", b""
    return (None if is_json or value.lower() in NO_TEXT else "word"), b""


def _piece(piece: bytes, form: _Form) -> tuple[int, list[Column]] | None:
    """Return how many records a piece has, from its first field to its last, and their columns."""
    if not piece.isascii():
        try:
            piece.decode()
        except UnicodeDecodeError:
            return None
    marks = [_BETWEEN[at : at + 1] for at in range(len(form.keys))]
    behind = (*form.between, form.to_next)
    # All that stands between fields is replaced, each by a byte of its own.
    for mark, between in zip(marks, behind, strict=True):
        piece = piece.replace(between, mark)
    found = piece.translate(None, _TEXT_BYTES) + marks[-1]
    period = b"".join(marks)
    count = len(found) // len(period)
    if found != period * count:
        return None
    fields = piece.translate(_AS_LINES).split(b"\n")
    if len(fields) != count * len(marks):
        return None
    columns: list[Column] = []
    for at, (kind, between) in enumerate(zip(form.kinds, behind, strict=True)):
        texts = fields[at :: len(marks)]
        column: Column = None
        if kind == "none":
            if set(texts) != {b"null"}:
                return None
        elif kind == "count":
            column = _counts(texts)
        elif _are_words(texts) if kind == "word" else _are_in_quotes(texts, between[:1]):
            column = TextColumn.of(texts)
        if column is None and kind != "none":
            return None
        columns.append(column)
    return count, columns


def _counts(texts: list[bytes]) -> CountsText | None:
    counts = CountsText.of(b",".join(texts))
    return counts if counts is not None and len(counts) == len(texts) else None


def _are_words(texts: list[bytes]) -> bool:
    short = {text.lower() for text in texts if len(text) < 6}
    return short.isdisjoint(NO_TEXT) and _WORDS.fullmatch(b"\n".join(texts)) is not None


def _are_in_quotes(texts: list[bytes], quote: bytes) -> bool:
    together = b"".join(texts)
    return quote not in together and (quote == b"'" or b"\\" not in together)


def number_run(data: bytes, start: int, lead: bytes) -> tuple[CountsText, int] | None:
    """Return the counts of the lines from one on that begin with `lead`, and where they stop.

    There one more line begins so: the last is left to who reads the rest, who knows whether its
    text goes on below. It is None where there are no two.
    """
    to_next = b"\n" + lead
    lists: list[CountsText] = []
    begin, size, is_near_end = start + len(lead), _FIRST, False
    while True:
        end = data.rfind(to_next, begin, begin + size)
        has_lines = end >= 0 and data.find(b",", begin, end) < 0
        found = CountsText.of(data[begin:end].replace(to_next, b",")) if has_lines else None
        if found is None:
            is_near_end = True
            if size <= _FIRST:
                break
            size //= 2
            continue
        lists.append(found)
        begin = end + len(to_next)
        if not is_near_end:
            size = min(2 * size, _PIECE)
    return (CountsText.joined(lists), begin - len(lead)) if lists else None
