"""Long lists in a JSON text, taken out before it is parsed: a list of counts, one of records."""

from __future__ import annotations

import json
import re

from shardctl.files.lists.counts_text import CountsText, without_blanks
from shardctl.files.lists.record_columns import RecordColumns, record_run

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
