"""The tests mirror the package: each module has a test module of its name; none imports another."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

_TESTS = Path(__file__).parent
_PACKAGE = _TESTS.parent / "shardctl"

_MOST_FILES = 14  # in a folder, __init__.py among them
_A_FILE_A_COMMAND = {"cli/commands"}  # as many as there are commands

# Modules without logic of their own, and what would tell if they were wrong.
_UNTESTED = {
    "errors.py": "kinds of errors without a body; tests/cli/test_failures.py sees their exit codes",
}


def modules() -> set[str]:
    """Return the modules of the package, as paths."""
    files = (file.relative_to(_PACKAGE) for file in _PACKAGE.rglob("*.py"))
    return {file.as_posix() for file in files if file.name not in ("__init__.py", "__main__.py")}


def test_every_module_has_a_test_module_of_its_name() -> None:
    def tested_by(module: str) -> Path:
        return _TESTS / Path(module).parent / f"test_{Path(module).name}"

    assert len(modules()) > 150
    untested = {module for module in modules() if not tested_by(module).exists()}
    assert sorted(untested) == sorted(_UNTESTED)


def test_no_room_holds_more_files_than_a_glance_takes_in() -> None:
    rooms = (file.parent.relative_to(_PACKAGE).as_posix() for file in _PACKAGE.rglob("*.py"))
    sizes = Counter(room for room in rooms if room not in _A_FILE_A_COMMAND)
    assert {room: size for room, size in sizes.items() if size > _MOST_FILES} == {}


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
