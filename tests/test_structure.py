"""No file of the tests imports a test module: what several share has a module of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_TESTS = Path(__file__).parent

# What may import one; to parse every file takes seconds.
_SUSPECT = re.compile(r"\btests\.[\w.]*\btest_|\bfrom tests\b[\w.]* import (?:.*|\([^)]*)\btest_")


def imported(file: Path) -> set[str]:
    """Return the modules of the tests that a file imports, or may import by `from`."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tests"}


def is_test_module(name: str) -> bool:
    path = _TESTS.parent / Path(*name.split(".")).with_suffix(".py")
    return path.name.startswith("test_") and path.is_file()


def test_no_file_imports_a_test_module() -> None:
    files = list(_TESTS.rglob("*.py"))
    assert len(files) > 100
    suspects = [file for file in files if _SUSPECT.search(file.read_text(encoding="utf-8"))]
    assert not [
        (file, name) for file in suspects for name in imported(file) if is_test_module(name)
    ]


def test_an_import_of_a_test_module_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "test_other.py"
    for line in (
        "from tests import test_structure",
        "import os, tests.test_structure as other",
        "from tests.test_structure import (\n    modules,\n)",
        "from tests import (\n    cases,\n    test_structure,\n)",
    ):
        file.write_text(f"from tests.cases import check_cases\n{line}\n")
        found = {name for name in imported(file) if is_test_module(name)}
        assert found == {"tests.test_structure"}, line
        assert _SUSPECT.search(line), line
