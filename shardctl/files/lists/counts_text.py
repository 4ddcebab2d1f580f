"""A long list of counts in a text: known to be one, and no int of Python made of any."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from shardctl.core.dataset.packed_ints import PackedInts

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
