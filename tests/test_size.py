"""The package stays small: what is added pays for its lines by what it takes away."""

from __future__ import annotations

import ast
from pathlib import Path

_PACKAGE = Path(__file__).parents[1] / "shardctl"
# What it is to have and a tenth; and what took nothing away that size: the chains of eight other
# loaders, training loops, audit and rehearse, digests of files.
MOST_LINES = 46_000 * 11 // 10 + 5_100
MOST_FILES = 320


def code_lines(text: str) -> int:
    """Return the number of lines that are no docstring, comment or blank line.

    >>> code_lines('\"\"\"What.\"\"\"' + chr(10) * 2 + 'x = [  # why' + chr(10) + ']')
    2
    """
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (ast.get_docstring(node, clean=False) is not None):
            documented = slice(node.body[0].lineno - 1, node.body[0].end_lineno)
            lines[documented] = [""] * len(lines[documented])
    return sum(line.strip()[:1] not in ("", "#") for line in lines)


def test_the_package_is_no_larger_than_it_was() -> None:
    counts = [code_lines(file.read_text("utf-8")) for file in _PACKAGE.rglob("*.py")]
    assert sum(counts) <= MOST_LINES
    assert sum(count > 0 for count in counts) <= MOST_FILES
