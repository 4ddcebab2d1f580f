"""What the output can show: a width, or none for a pipe or a file, and colour."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """`width` in columns, None where nothing may be cut or folded; `color` whether to colour."""

    width: int | None = None
    color: bool = False


PLAIN = Screen()
