"""Every call of `phrase` in the package, as it is in the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import shardctl

PACKAGE = Path(shardctl.__file__).parent


def calls_of_phrase() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "phrase":
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node
