"""Words of our own that may not come back: what users read is in plain English.

The texts are help pages, guides, the README, the stories of lint, public docstrings and every
string of the package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.golden import values

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "shardctl"

PLAIN = values(Path(__file__).with_name("words.txt"), globals())


def public_names() -> dict[Path, set[str]]:
    """Return the public names of each module that has some."""
    names: dict[Path, set[str]] = {}
    for file in [PACKAGE / "__init__.pyi", *PACKAGE.glob("*/__init__.py")]:
        for line in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("shardctl."):
                source = ROOT.joinpath(*str(line.module).split(".")).with_suffix(".py")
                names.setdefault(source, set()).update(alias.name for alias in line.names)
    return names


def docstrings(body: list[ast.stmt], public: set[str] | None) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the docstrings of a body, each with whether it is public; None is every name."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            shown = not node.name.startswith("_") and (public is None or node.name in public)
            first = node.body[0]
            if isinstance(first, ast.Expr):
                yield first.value, shown
            yield from docstrings(node.body, None if shown else set())


def strings(path: Path, public: set[str] | None) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module and its public docstrings, with their lines."""
    tree = ast.parse(path.read_text("utf-8"))
    hidden = {id(text) for text, shown in docstrings(tree.body, public) if not shown}
    if path.name != "__init__.py" and isinstance(tree.body[0], ast.Expr):
        hidden.add(id(tree.body[0].value))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.lineno, node.value


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Return what users read, each with its place."""
    return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for path in [
        ROOT / "README.md",
        *PACKAGE.glob("guide/*.md"),
        PACKAGE / "verbs/lint/stories.md",
    ]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line
    public = public_names()
    for path in PACKAGE.rglob("*.py"):
        names = None if path.name == "command.py" else public.get(path, set())  # help pages
        for number, text in strings(path, names):
            yield f"{path.relative_to(ROOT)}:{number}", " ".join(text.split())


@pytest.mark.parametrize("pattern", PLAIN)
def test_a_word_of_our_own_does_not_come_back(pattern: str) -> None:
    wanted = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    places = [f"{place}: {text}" for place, text in texts() if wanted.search(text)]
    assert not places, f"write: {PLAIN[pattern]}\n" + "\n".join(places)
