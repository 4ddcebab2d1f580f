"""Every call of `phrase` and `misuse` in the package, as it is in the source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import shardctl

PACKAGE = Path(shardctl.__file__).parent
CALLED = ("phrase", "misuse")


@functools.cache
def calls_of_phrase() -> list[tuple[str, ast.Call]]:
    return list(_calls())


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted({*PACKAGE.rglob("*.py")} - {PACKAGE / "core" / "phrase.py"}):
        source = path.read_text("utf-8")
        named = any(name in source for name in CALLED)
        for node in ast.walk(ast.parse(source)) if named else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CALLED:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node
