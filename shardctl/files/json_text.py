"""JSON from anywhere: a value, or one line that says what is wrong with it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import NoReturn

from shardctl.core.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.file_text import MAX_VALUES, decode
from shardctl.files.record_columns import (
    CountsText,
    RecordColumns,
    record_run,
    without_blanks,
)
from shardctl.files.stores.anywhere import read_file
from shardctl.files.stores.remote_path import AnyPath


def read_json(path: AnyPath, *, packed: tuple[str, ...] = (), in_quotes: bool = False) -> object:
    """Return the value a JSON file holds; long lists under the keys of `packed` as `parse_json`.

    Raises:
        DatasetError: the file cannot be read or is not JSON.
    """
    return parse_json(
        read_file(path), source=printable(str(path)), packed=packed, in_quotes=in_quotes
    )


def parse_json(
    data: bytes, *, source: str, packed: tuple[str, ...] = (), in_quotes: bool = False
) -> object:
    """Return the value of a JSON text; `source` names it in errors.

    A long list under one of the keys of `packed` may come as `CountsText`, with `in_quotes` where
    its counts stand in quotes too, or as `RecordColumns`, whose values are not counted.

    A key that occurs twice is refused, as protobuf's parser does (json_format.Parse), and so are
    NaN and Infinity, which are not JSON.

    >>> parse_json(b'{"name": "mnist"}', source="dataset_info.json")
    {'name': 'mnist'}

    Raises:
        DatasetError: not UTF-8, not JSON, nested too deeply, a number too long to convert, or more
            values than any dataset needs.
    """
    rest, lists = cut_lists(data, packed, in_quotes=in_quotes)
    if lists:
        with suppress(DatasetError, ValueError):  # which are said of the whole text, below
            return _parsed(rest, lists, source=source)
    return _parsed(data, [], source=source)


def _parsed(data: bytes, lists: list[Cut], *, source: str) -> object:
    # Every value but the first of its list or mapping stands behind a comma, so this is no less
    # than the values; a comma in a text counts too.
    num_counts = sum(len(one) for one in lists if isinstance(one, CountsText))
    if num_counts + sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise DatasetError(f"{source}: more than {MAX_VALUES} values")
    text = decode(data, source=source)
    del data

    def mapping_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if lists:
            pairs = [(key, put_back(value, lists)) for key, value in pairs]
        return _without_duplicates(pairs)

    try:
        value: object = json.loads(
            text, object_pairs_hook=mapping_of, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").lower()
        raise DatasetError(
            f"{source}: line {error.lineno}, column {error.colno} is not JSON: {what}"
        ) from error
    except RecursionError as error:
        raise DatasetError(f"{source}: JSON nested too deeply") from error
    except ValueError as error:  # more digits than Python converts
        raise DatasetError(f"{source}: a number with too many digits") from error
    except _BadValueError as error:
        raise DatasetError(f"{source}: {error}") from error
    return value


class _BadValueError(Exception):
    """What JSON's grammar allows and we refuse."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _BadValueError(f"key {quoted(key)} is there twice")
            seen.add(key)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _BadValueError(f"{text} is not a JSON number")


# Long lists in a JSON text, taken out before it is parsed: a list of counts, one of records.

_LONG = 1 << 16  # bytes; a shorter list is parsed with the rest
_OTHER = re.compile(rb'[^0-9", \t\r\n]')
_RECORD = re.compile(rb"\n *(?=\{)")
# No bare word is JSON: so the last quote of the key ends a text, and a list begins at the bracket.
_OPENING = rb'(?:%s)"[ \t\r\n]*:[ \t\r\n]*\['
_MARK = "\0list "  # that no JSON text holds but by its escape

Cut = CountsText | RecordColumns


def cut_lists(
    data: bytes, keys: tuple[str, ...], *, in_quotes: bool = False
) -> tuple[bytes, list[Cut]]:
    """Return a JSON text with marks for the long lists under some keys, and these.

    Counts may stand in quotes with `in_quotes`, as protobuf writes them. Records are those of our
    writers, and the last one stays in the text. `put_back` finds the list of a mark.
    """
    lists: list[Cut] = []
    if len(data) < _LONG or not keys or b"\\u0000" in data:
        return data, lists
    opening = re.compile(_OPENING % b"|".join(re.escape(key.encode()) for key in keys))
    kept: list[bytes] = []
    done = at = 0
    while found := opening.search(data, at):
        at = found.end()
        cut = _records(data, at) or _counts(data, at, in_quotes=in_quotes)
        if cut is None:
            continue
        start, stop, items = cut
        mark = json.dumps(f"{_MARK}{len(lists)}").encode()
        comma = b"," if isinstance(items, RecordColumns) else b""
        kept += [data[done:start], mark, comma, b"\n" * data.count(b"\n", start, stop)]
        lists.append(items)
        done = at = stop
    return b"".join((*kept, data[done:])) if lists else data, lists


def put_back(value: object, lists: list[Cut]) -> object:
    """Return a list for its mark, any other value as it is.

    Raises:
        ValueError: what stayed of a list of records is no record like the others.
    """
    if isinstance(value, str) and value.startswith(_MARK):
        return lists[int(value.removeprefix(_MARK))]
    if isinstance(value, list) and value and isinstance(value[0], str):
        first = put_back(value[0], lists)
        if isinstance(first, RecordColumns):
            whole = first.with_records(value[1:])
            if whole is None:
                raise ValueError
            return whole
    return value


def _counts(data: bytes, start: int, *, in_quotes: bool) -> tuple[int, int, CountsText] | None:
    """Return the list of counts whose bracket stands before `start`: its ends and what it holds."""
    stop = data.find(b"]", start)
    if stop - start < _LONG or _OTHER.search(data, start, stop):
        return None
    body = without_blanks(data[start:stop])
    if body is None:
        return None
    if in_quotes and body.startswith(b'"') and body.endswith(b'"'):
        num_items = 1 + body.count(b'","')
        body = body[1:-1].replace(b'","', b",")
        if body.count(b",") + 1 != num_items:  # a comma in a text
            return None
    counts = CountsText.of(body)
    return None if counts is None else (start - 1, stop + 1, counts)


def _records(data: bytes, start: int) -> tuple[int, int, RecordColumns] | None:
    """Return the records of a list whose bracket stands before `start`, all but the last."""
    found = _RECORD.match(data, start)
    run = None if found is None else record_run(data, start + 1, is_json=True)
    if found is None or run is None or run[1] - start < _LONG:
        return None
    return found.end(), run[1], run[0]
