"""Long lists in a YAML text that we wrote, read before it is parsed: a hundred times as fast."""

from __future__ import annotations

import json
import re

_LONG = 1 << 18  # characters; a shorter list is parsed with the rest
_LINE = re.compile(rb"^( *(?:- )?[a-z_]+: )\[(.+)\]$", re.MULTILINE)
_COUNTS = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?:, (?:0|[1-9][0-9]{0,17}))*+")
_WORD = r"[A-Za-z_/][A-Za-z0-9_./+-]*+"
_TEXTS = re.compile(rf"(?:'[^']*+'|{_WORD})(?:, (?:'[^']*+'|{_WORD}))*+")
_TEXT = re.compile(rf"'([^']*+)'|({_WORD})")
# Words that are no texts to YAML 1.1.
_NO_TEXT = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})
# What may make a line a part of something else, or of nothing: texts over several lines, of which
# those in single quotes show by a line with an odd number of them; comments.
_OTHER = re.compile(rb"[|>#&*!\"%\t\r]")
_MARK = "\0list "  # that no YAML text holds but by its escape
_LINE_OF_MARK = re.compile(rb': "\\u0000list [0-9]+"$', re.MULTILINE)


def cut_lists(data: bytes) -> tuple[bytes, list[list[object]]]:
    """Return a YAML text with marks for the long lists that stand on a line each, and these.

    A list is of counts or of texts, all else stays in the text. Lines keep their numbers. `marked`
    returns the list of a mark.
    """
    if len(data) < _LONG:
        return data, []
    lists: list[list[object]] = []

    def cut(found: re.Match[bytes]) -> bytes:
        items = _items(found[2]) if len(found[2]) >= _LONG else None
        if items is None:
            return found[0]
        lists.append(items)
        return found[1] + json.dumps(f"{_MARK}{len(lists) - 1}").encode()

    rest = _LINE.sub(cut, data)
    other = _LINE_OF_MARK.sub(b"", rest) if lists else b""
    if _OTHER.search(other) or any(line.count(b"'") % 2 for line in other.split(b"\n")):
        return data, []
    return rest, lists


def marked(text: str, lists: list[list[object]]) -> object:
    """Return the list of a mark, any other text as it is."""
    if lists and text.startswith(_MARK):
        return lists[int(text.removeprefix(_MARK))]
    return text


def _items(body: bytes) -> list[object] | None:
    """Return the items between the brackets of a list, None where it takes a parser."""
    if _COUNTS.fullmatch(body):
        counts: list[object] = json.loads(b"[%s]" % body)
        return counts
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    if "''" in text or not text.isprintable() or not _TEXTS.fullmatch(text):
        return None
    found = _TEXT.findall(text)
    if any(word.lower() in _NO_TEXT for _, word in found if len(word) < 6):
        return None
    return [quoted or word for quoted, word in found]
