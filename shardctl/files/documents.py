"""Writes documents as JSON, YAML and CSV, with their fields in a fixed order.

YAML is written by hand, because PyYAML with representers of the same styles is slower and writes
other bytes. 200,000 records of a plan take its C writer 13.7 s and 800 MB, and `to_yaml` 1.7 s and
170 MB; its Python writer takes 17 times as long as `to_yaml`. Both write text with line breaks over
several lines and U+202E as it is, and the C writer fails on file names that are not UTF-8.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import string
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from shardctl.base.columns import Cell, OnDemand, RecordStream, filled, shared
from shardctl.base.text import inert, printable

Document = dict[str, Any]

FORMAT_VERSION = 1
_MAX_CELL = 1 << 30  # no text is cut
_CHUNK = 1 << 14  # items made into text at once
_ITEMS_IN_LINE = 16
_LINE = 92  # characters of a line of words, its indent included


class Block(Document):
    """A mapping that YAML writes with a key on a line, even where every value is a scalar."""


class Words(list[str]):
    """Words without blanks, which YAML writes as one text in lines, and JSON as a list."""


class Chunks:
    """A list of numbers or of texts that comes in chunks, from the first whenever it is written."""

    def __init__(self, chunks: Callable[[], Iterator[list[int] | list[str]]]) -> None:
        self.chunks = chunks

    def lines(self, most: int, separator: str) -> Iterator[str]:
        """Yield the items as JSON, at most so many between separators."""
        between = ""
        for chunk in self.chunks():
            for start in range(0, len(chunk), most):
                yield f"{between}{json_line(chunk[start : start + most])[1:-1]}"
                between = separator


def to_json(document: Document) -> Iterator[str]:
    """Yield a document as JSON: indented, with every record and every list of scalars on a line.

    Characters that a terminal or a runner of CI would act on are escaped.

    >>> print("".join(to_json({"a": 1, "rows": [{"x": 1}, {"x": 2}], "ids": [1, 2]})), end="")
    {
      "a": 1,
      "rows": [
        {"x": 1},
        {"x": 2}
      ],
      "ids": [1, 2]
    }
    """
    if _is_nested(document):
        yield from _json(document, "")
    else:
        yield json_line(document)
    yield "\n"


_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True).encode


def _json(value: object, indent: str) -> Iterator[str]:
    """Yield a nested value; one that is not is a line of the encoder that is written in C."""
    deeper = indent + "  "
    if isinstance(value, RecordStream):
        # Every record comes with the separator in front; the first one's comma becomes the bracket.
        pieces = json_lines(value, f",\n{deeper}", "")
        yield f"[{next(pieces)[1:]}"
        yield from pieces
        yield f"\n{indent}]"
        return
    brackets = "{}" if isinstance(value, dict) else "[]"
    separator = f"{brackets[0]}\n{deeper}"
    for key, item in _items(value):
        name = "" if key is None else f"{json_line(key)}: "
        if _is_nested(item):
            yield separator + name
            yield from _json(item, deeper)
        elif isinstance(item, Chunks):
            yield from (f"{separator}{name}[", *item.lines(_CHUNK, ", "), "]")
        else:
            yield separator + name + json_line(item)
        separator = f",\n{deeper}"
    yield f"\n{indent}{brackets[1]}"


def json_line(value: object) -> str:
    r"""Return a value as JSON on a line, with escapes for what a terminal or a CI runner acts on.

    >>> print(json_line(["a##[error]", "\x9b1m"]))
    ["a#\u0023[error]", "\u009b1m"]
    """
    value = list(value) if isinstance(value, OnDemand) else value
    text = _encode(value)
    text = text if text.isprintable() else _encode_ascii(value)
    return text.replace("##", "#\\u0023")


def json_lines(records: RecordStream, lead: str = "", end: str = "\n") -> Iterator[str]:
    """Yield each record as JSON on a line, many of them at once."""
    keys = (f"{json_line(field)}: " for field in records.fields)
    return _lines(records, f"{lead}{{", keys, f"}}{end}", _JSON)


def _lines(
    records: RecordStream,
    lead: str,
    keys: Iterable[str],
    end: str,
    form: tuple[_Form, Callable[[Any], str]],
    separator: str = ", ",
) -> Iterator[str]:
    """Yield records as text, many at once: a lead, keys before their values, and an end."""
    # Before the first value of a record stands the lead, before each other one the separator.
    leads = chain([lead], repeat(separator))
    texts = list(map("".join, zip(leads, keys, strict=False)))
    for count, cells in records.pieces():
        # One call to format thousands of records: constant texts go into the pattern, the rest are
        # columns.
        around, columns = zip(*(_shape(cell, *form) for cell in cells), strict=True)
        # What stands between two values: the end of the one, key and separator, the start of the
        # next.
        befores = map("".join, zip(("", *around), (*texts, end), (*around, ""), strict=True))
        yield filled([*befores], count, columns)


# How the texts of a column are written in a format, and what stands around each of them.
_Form = Callable[[list[str]], tuple[str, list[str]]]


def _shape(cell: Cell, form: _Form, write: Callable[[Any], str]) -> tuple[str, Any]:
    """Return what stands around the values of a column, and these, as text where they are not."""
    # A value that all rows share is written once.
    values = shared(cell)
    if values is None or isinstance(values, str | int):
        return "", write(values)
    kinds = set(map(type, values)) if isinstance(values, list) else {int}
    if kinds == {str}:
        return form(list(values))
    if kinds == {type(None)}:
        return "", write(None)
    return "", values if kinds == {int} else list(map(write, values))


def _form(write: Callable[[Any], str], plain: bytes, around: str = "", *reserved: str) -> _Form:
    """Return a form for which texts of plain letters are written as they are.

    Where nothing is around them they begin with letters; `reserved` are those that are not text.
    """

    def are_words(texts: list[str]) -> bool:
        starts = {text[:1] for text in texts} <= _STARTS
        return starts and not (reserved and {text.lower() for text in texts} & {*reserved})

    def form(texts: list[str]) -> tuple[str, list[str]]:
        text = "".join(texts)
        # All texts at once: what is left after the plain letters are deleted needs escapes.
        is_plain = text.isascii() and not text.encode().translate(None, plain)
        if is_plain and (around or are_words(texts)):
            return around, texts
        # Names repeat in a column, so each is escaped once.
        written = {text: write(text) for text in set(texts)}
        return "", [written[text] for text in texts]

    return form


_STARTS = {*string.ascii_letters, "_"}
_WORD_BYTES = f"{string.ascii_letters}{string.digits}_./-".encode()
_JSON = _form(json_line, bytes({*range(32, 127)} - {*b'"\\#'}), '"'), json_line


def to_yaml(document: Document) -> Iterator[str]:
    """Yield a document as YAML: in blocks, with every record and every list of scalars on a line.

    >>> print("".join(to_yaml({"a": "no", "rows": [{"x": 1}, {"x": 2}], "ids": [1, 2]})), end="")
    a: 'no'
    rows:
    - {x: 1}
    - {x: 2}
    ids: [1, 2]
    >>> print("".join(to_yaml({"rows": Block(x=1), "ids": Words(["3x2", "1"])})), end="")
    rows:
      x: 1
    ids: |
      3x2 1
    """
    if _is_nested(document):
        yield from _yaml(document, "")
    else:
        yield f"{yaml_line(document)}\n"


def _yaml(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a nested value, each with its line break, or many of them."""
    if isinstance(value, RecordStream):
        keys = (f"{yaml_line(field)}: " for field in value.fields)
        yield from _lines(value, f"{indent}- {{", keys, "}\n", _YAML)
        return
    for key, item in _items(value):
        lead = f"{indent}-" if key is None else f"{indent}{yaml_line(key)}:"
        if isinstance(item, Words) and item:
            deeper = f"{indent}  "
            text = textwrap.fill(
                " ".join(item), _LINE - len(deeper), break_long_words=False, break_on_hyphens=False
            )
            yield f"{lead} |\n{textwrap.indent(text, deeper)}\n"
        elif isinstance(item, Chunks):
            # Quoted as in JSON: `12:30`, an id of a split named 12, would be a number in base 60.
            yield from (f"{lead} [", *item.lines(_ITEMS_IN_LINE, f",\n{indent}  "), "]\n")
        elif not _is_nested(item):
            yield f"{lead} {yaml_line(item)}\n"
        elif key is None:  # the first line of the item is on the line of the dash
            lines = _yaml(item, f"{indent}  ")
            yield f"{lead} {next(lines)[len(indent) + 2 :]}"
            yield from lines
        else:
            yield f"{lead}\n"
            yield from _yaml(item, f"{indent}  " if isinstance(item, dict) else indent)


_YAML_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*")
# Words that are not text to YAML 1.1, which PyYAML reads.
_YAML_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def yaml_line(value: object) -> str:
    """Return a value that is not nested as YAML in flow style.

    >>> print(yaml_line(["train", "0/8", None]))
    [train, '0/8', null]
    """
    if isinstance(value, str):
        if _YAML_WORD.fullmatch(value) and value.lower() not in _YAML_RESERVED:
            return value
        return _yaml_quoted(value)
    if isinstance(value, dict):
        return f"{{{', '.join([f'{yaml_line(k)}: {yaml_line(v)}' for k, v in value.items()])}}}"
    if isinstance(value, (list, tuple, OnDemand)):
        if type(value) is list and set(map(type, value)) == {int}:
            return _encode(value)  # is YAML too, and ten times as fast
        return f"[{', '.join(map(yaml_line, value))}]"
    if isinstance(value, float):
        return _yaml_float(value)
    return _encode(value)  # None, bool, int


_YAML = _form(yaml_line, _WORD_BYTES, "", *_YAML_RESERVED), yaml_line


def _yaml_quoted(text: str) -> str:
    if text.isprintable() and "##" not in text:
        return f"""'{text.replace("'", "''")}'"""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("##", r"#\x23")
    return f'"{printable(escaped, _MAX_CELL)}"'


def _yaml_float(value: float) -> str:
    text = repr(value)
    if not math.isfinite(value):
        return text.replace("inf", ".inf").replace("nan", ".nan")
    # To YAML 1.1 a number without a point is not a float.
    return text if "." in text else text.replace("e", ".0e")


def _is_nested(value: object) -> bool:
    """Return whether a value holds mappings or lists, so that it takes several lines."""
    if isinstance(value, Block):
        return bool(value)
    if isinstance(value, RecordStream) and not isinstance(value, OnDemand):
        return True
    items = value[:1] if isinstance(value, OnDemand) else (item for _, item in _items(value))
    return any(isinstance(item, (dict, list, tuple, OnDemand, RecordStream)) for item in items)


def _items(value: object) -> Iterable[tuple[str | None, object]]:
    """Return the items of a mapping with their keys, those of a list with None."""
    if isinstance(value, dict):
        return value.items()
    return zip(repeat(None), value if isinstance(value, (list, tuple, OnDemand)) else ())


# Source: OWASP, CSV Injection. Spreadsheets skip blanks, read wide forms in East Asian languages,
# and divide cells at `;` where the comma is in numbers.
_FORMULA = re.compile(r"(^|;)(?='* *[=+@＝＋＠－-])")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_CSV_WORD = re.compile(r"\w[\w./-]*", re.ASCII)


def to_csv(records: RecordStream) -> Iterator[str]:
    r"""Yield rows as CSV (RFC 4180, with line feeds) whose texts do nothing where they are read.

    A text that a spreadsheet would compute gets a `'` before it, and so does one that is such a
    text after a `'`: without its first `'` it is what it was. What a terminal or a runner of CI
    would act on is written as in tables. Numbers stay as they are.

    >>> from shardctl.base.columns import stream_of
    >>> print("".join(to_csv(stream_of("a b", [[1, "x,y"], [-1, "=1+1"]]))), end="")
    a,b
    1,"x,y"
    -1,'=1+1
    """
    yield f"{','.join(map(_csv_cell, records.fields))}\n"
    yield from _lines(records, "", [""] * len(records.fields), "\n", _CSV, ",")


def _csv_cell(value: object) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if _CSV_WORD.fullmatch(value):
        return value
    shown = inert(f",{printable(value, _MAX_CELL)}")[1:]  # as behind another cell of a line
    text = shown if _NUMBER.fullmatch(shown) else _FORMULA.sub(r"\1'", shown)
    buffer = io.StringIO()
    # Behind a first cell "0,": alone in its line an empty text would be written as "".
    csv.writer(buffer, lineterminator="").writerow((0, text))
    cell = buffer.getvalue()[2:]
    return cell if inert(cell) == cell else f'"{cell}"'  # a command would begin a line


_CSV = _form(_csv_cell, _WORD_BYTES), _csv_cell
