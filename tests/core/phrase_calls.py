"""Every call of `phrase` and `refused` in the package, as it is in the source."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import shardctl

PACKAGE = Path(shardctl.__file__).parent


@functools.cache
def calls_of_phrase() -> list[tuple[str, ast.Call]]:
    return list(_calls())


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        if path.name == "phrase.py":
            continue
        names = re.search(r"^from shardctl\.core\.phrase import (.*)$", source, re.MULTILINE)
        kinds = {"phrase", "refused"} & set(names[1].split(", ") if names else ())
        for node in ast.walk(ast.parse(source)) if kinds else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node
