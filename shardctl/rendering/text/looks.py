"""How text looks where colour is shown: what it means, and sixteen slots told apart.

Of the sixteen colours of a terminal only bright red (91) and bright magenta (95) stand out from
black and from white alike: in the palettes of xterm, Windows, VS Code, GNOME, macOS and Solarized
they keep a contrast of 3 (WCAG 2.1, what large text needs), which the test measures. Yellow falls
to 1.1 and green and cyan to 1.3 on white, blue to 1.6 and plain red to 2.4 on black. Nothing is
said by a look alone: there is a word, a mark or a number too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from shardctl.core.text import inert, printable

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
