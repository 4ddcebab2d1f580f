"""The words of a text of stages, read from left to right, and the place of what is wrong."""

from __future__ import annotations

import re
from typing import Any

from shardctl.core.stages.listed import Written
from shardctl.core.text import quoted
from shardctl.errors import UsageError

BARE_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_KEYWORD = re.compile(r"([A-Za-z_][\w-]*)\s*=(?!=)")
# As TFDS's own pattern of a part of a spec (core/splits.py), with blanks around the `+`.
_PART = r"[\w-]+(?:\[[\w%:.-]+\])?"
SPEC = re.compile(rf"{_PART}(?:\s*\+\s*{_PART})*")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(['\"\\])")
_ATOM = re.compile(r"[^\s,()\[\]|='\"]+")
_WHOLE = re.compile(r"[-+]?\d[\d_]{0,99}")
_REAL = re.compile(r"[-+]?(?:\d{1,50}\.\d{0,50}|\.?\d{1,50})(?:[eE][-+]?\d{1,4})?")
_BLANKS = re.compile(r"\s*")
# What stands for a value of Python or of tf.data.
_WORDS: dict[str, Any] = {
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "None": None,
    "none": None,
    "null": None,
    "AUTOTUNE": "auto",
    "tf.data.AUTOTUNE": "auto",
    "tf.data.experimental.AUTOTUNE": "auto",
    "UNKNOWN_CARDINALITY": -2,
    "tf.data.UNKNOWN_CARDINALITY": -2,
    "INFINITE_CARDINALITY": -1,
    "tf.data.INFINITE_CARDINALITY": -1,
}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SHOWN = 24  # characters of the place in an error


class Scanner:
    """Reads a text word by word; what is next is looked at once, so the time is that of reading."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self._blanks()

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position == len(self._text)

    def error(self, rule: object, at: int | None = None) -> UsageError:
        """Return the error that names a place, that of the next word where none is given."""
        rest = self._text[self.position if at is None else at :]
        place = f"at {quoted(rest, _SHOWN)}" if rest else "at the end"
        return UsageError(f"{place}: {rule}")

    def peeked(self) -> str:
        """Return the next character, "" at the end."""
        return self._text[self.position : self.position + 1]

    def took(self, char: str) -> bool:
        """Read a character, where it is the next."""
        if self.peeked() != char:
            return False
        self._go(self.position + 1)
        return True

    def opened(self) -> str | None:
        """Read the bracket that opens a list; return the one that closes it, None for no list."""
        char = self.peeked()
        if char not in ("[", "("):
            return None
        self._go(self.position + 1)
        return _CLOSING[char]

    def name(self) -> str | None:
        """Read the name of a call."""
        return self._take(_NAME)

    def keyword(self) -> str | None:
        """Read the name of an argument and its `=`."""
        found = _KEYWORD.match(self._text, self.position)
        if found is None:
            return None
        self._go(found.end())
        return found[1].replace("-", "_")

    def peeked_name(self) -> str | None:
        """Return the name that is next, where what is next is not more than a name."""
        found = BARE_WORD.match(self._text, self.position)
        return None if found is None else found[0]

    def peeked_after(self, word: str) -> str:
        """Return the first character after the next word and its blanks."""
        after = _BLANKS.match(self._text, self.position + len(word))
        end = len(self._text) if after is None else after.end()
        return self._text[end : end + 1]

    def spec(self) -> str | None:
        """Read a spec as TFDS writes it."""
        return self._take(SPEC)

    def string(self) -> str | None:
        """Read a text in quotes."""
        if self.peeked() not in ("'", '"'):
            return None
        found = _STRING.match(self._text, self.position)
        if found is None:
            raise self.error("the quote is not closed")
        self._go(found.end())
        return _ESCAPE.sub(r"\1", found[1] if found[1] is not None else found[2])

    def atom(self) -> Any:
        """Read a number, a word or a text in quotes."""
        text = self.string()
        if text is not None:
            return text
        start = self.position
        word = self._take(_ATOM)
        if word is None:
            raise self.error("a value is needed")
        if word in _WORDS:
            return _WORDS[word]
        if _WHOLE.fullmatch(word):
            return int(word.replace("_", ""))
        if _REAL.fullmatch(word):
            return float(word)
        if word[0] in "0123456789.+-" and word[1:2].isdigit() and word.isdigit():
            raise self.error("a number of at most 100 digits is needed", start)
        return word

    def skip_function(self) -> None:
        """Read over the name of a function.

        The identity is no stage for TensorFlow, so a function that is written out is not taken.
        """
        if self._take(_FUNCTION) is None or self.peeked() not in (",", ")"):
            raise self.error("the name of a function, or nothing, is needed; threads are calls=4")

    def code(self) -> Written:
        """Read an argument as it is written, up to its comma or closing bracket."""
        start = self.position
        self.skip_code()
        return Written(self._text[start : self.position].strip())

    def skip_code(self) -> None:
        """Read over an argument that a script computes, up to its comma or closing bracket."""
        closing: list[str] = []
        while not self.at_end:
            char = self.peeked()
            if not closing and char in (",", ")"):
                return
            if self.string() is not None:
                continue
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif char in ")]}" and (not closing or closing.pop() != char):
                raise self.error("a bracket that nothing opened")
            self._go(self.position + 1)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self.position)
        if found is None:
            return None
        self._go(found.end())
        return found[0]

    def _go(self, position: int) -> None:
        self.position = position
        self._blanks()

    def _blanks(self) -> None:
        found = _BLANKS.match(self._text, self.position)
        if found is not None:
            self.position = found.end()
