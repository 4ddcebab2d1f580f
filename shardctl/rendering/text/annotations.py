"""Annotations that GitHub shows beside a line of a pull request.

Source of the form and of what is escaped: actions/toolkit, core/src/command.ts.
"""

from __future__ import annotations

from typing import Literal

from shardctl.core.text import inert, printable

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
