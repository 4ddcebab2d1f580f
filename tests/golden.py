"""Texts that a test compares whole, each in a file beside the tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.strategies import error_line


def assert_golden(path: Path, text: str) -> None:
    """Fail unless a text is that of its file; SHARDCTL_GOLDEN=write writes the file anew.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "one.txt")
    >>> _ = file.write_text("a table")
    >>> assert_golden(file, "a table")
    """
    if os.environ.get("SHARDCTL_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"{path.name} differs; SHARDCTL_GOLDEN=write writes it anew"


def rows(path: Path) -> dict[str, str]:
    """Return the lines `name: text` of a file; those that begin with `# ` say what they are."""
    lines = path.read_text("utf-8").splitlines()
    parts = (line.partition(": ") for line in lines if not line.startswith("# "))
    return {name: text for name, _, text in parts}


def values(path: Path, module: dict[str, Any]) -> dict[str, Any]:
    """Return the lines `name: expression` of a file, evaluated among the names of a module."""
    return {name: eval(text, module) for name, text in rows(path).items()}


def listed(path: Path, module: dict[str, Any]) -> list[Any]:
    """Return the expressions in the lines of a file, evaluated among the names of a module."""
    lines = path.read_text("utf-8").splitlines()
    return [eval(line, module) for line in lines if not line.startswith("# ")]


def assert_answers(path: Path, answer: Callable[[str], object]) -> None:
    """Compare answers with a file of lines `> question`, each with its answer below it.

    An error is an answer too. Lines that begin with `# ` say what the questions below are about.
    """
    lines = []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(("# ", "> ")):
            lines.append(line)
        if line.startswith("> "):
            lines += [f"  {said}" for said in _answered(answer, line[2:]).splitlines()]
    assert_golden(path, "".join(f"{line}\n" for line in lines))


def assert_evaluated(module: dict[str, object], name: str, *functions: Any) -> None:
    """Compare expressions, evaluated among the names of a module of tests, with its golden file.

    Functions that these call, and no other line of the module, are passed to it.
    """
    path = Path(str(module["__file__"])).parent / "golden" / f"{name}.txt"
    names = module | {one.__name__: one for one in functions}
    assert_answers(path, lambda question: eval(question, names))


def _answered(answer: Callable[[str], object], question: str) -> str:
    found: list[object] = []
    error = error_line(lambda: found.append(answer(question)))
    return str(found[0]) if error is None else f"error: {error}"
