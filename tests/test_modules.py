"""Test modules stand alone: what several of them need is a fixture or a module of another name."""

from __future__ import annotations

import ast
from pathlib import Path

_TESTS = Path(__file__).parent


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
    files = {file: imported(file) for file in _TESTS.rglob("*.py")}
    assert len(files) > 100
    assert not [(file, name) for file in files for name in files[file] if is_test_module(name)]


def test_an_import_of_a_test_module_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "test_other.py"
    file.write_text("from tests import test_modules\nfrom tests.cases import check_cases\n")
    assert [name for name in imported(file) if is_test_module(name)] == ["tests.test_modules"]
