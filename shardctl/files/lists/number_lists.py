"""Long lists of whole numbers in a JSON text, packed before it is parsed: eight bytes a number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from shardctl.core.dataset.packed_ints import PackedInts

_LONG = 1 << 22  # bytes; a shorter list is parsed with the rest
_PIECE = 1 << 20
_OTHER = re.compile(rb'[^0-9", \t\r\n]')
# No bare word is JSON: so the last quote of the key ends a text, and a list begins at the bracket.
_OPENING = rb'%s"[ \t\r\n]*:[ \t\r\n]*\['
_MARK = "\0list "  # that no JSON text holds but by its escape


def packed_lists(data: bytes, keys: tuple[str, ...]) -> tuple[bytes, list[PackedInts]]:
    """Return a JSON text with marks for the long lists of counts under some keys, and these.

    Numbers may stand in quotes, as protobuf writes them. All else keeps its line and column.
    `unpacked` puts a list in the place of its mark. A list of anything else stays in the text.
    """
    lists: list[PackedInts] = []
    if len(data) < _LONG or b"\\u0000" in data:
        return data, lists
    opening = re.compile(_OPENING % b"(?:%s)" % b"|".join(re.escape(key.encode()) for key in keys))
    kept, done, at = [], 0, 0
    while found := opening.search(data, at):
        start, stop = found.end(), data.find(b"]", found.end())
        at = start
        if stop - start < _LONG or _OTHER.search(data, start, stop):
            continue
        try:
            packed = PackedInts(_numbers(data, start, stop))
        except (ValueError, OverflowError):
            continue
        mark = json.dumps(f"{_MARK}{len(lists)}").encode()
        lines = b"\n" * data.count(b"\n", start, stop)
        last_line = data.rfind(b"\n", start, stop) + 1 or start - 1 + len(mark)
        kept += [data[done : start - 1], mark, lines, b" " * (stop + 1 - last_line)]
        lists.append(packed)
        done = at = stop + 1
    if not lists:
        return data, lists
    kept.append(data[done:])
    return b"".join(kept), lists


def unpacked(value: object, lists: list[PackedInts]) -> object:
    """Return a list for its mark, any other value as it is."""
    if lists and isinstance(value, str) and value.startswith(_MARK):
        return lists[int(value.removeprefix(_MARK))]
    return value


def _numbers(data: bytes, start: int, stop: int) -> Iterator[int]:
    """Yield the counts of a list, cut at commas: where one is in a text, a piece is not JSON.

    Raises:
        ValueError: not JSON, an empty text, or more digits than an int64 has for sure.
    """
    while start <= stop:
        cut = data.find(b",", min(start + _PIECE, stop), stop)
        end = stop if cut < 0 else cut
        items = json.loads(b"[%s]" % data[start:end])
        if not items or not set(map(type, items)) <= {int, str}:
            raise ValueError
        texts = [item for item in items if type(item) is str]
        if texts and (len(texts) < len(items) or max(map(len, texts)) > 18):
            raise ValueError
        if not all(map(str.isdigit, texts)):
            raise ValueError
        yield from map(int, items)
        start = end + 1
