"""A mutant in place of a module, in every Python of an environment; no file changes."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

from tests.mutants.mutations import Mutant, mutants

_VARIABLE = "PLANTED_MUTANT"
_STARTED = Path(__file__).parent / "started"  # its sitecustomize.py plants where Python starts
_FOLDERS = (str(_STARTED), str(Path(__file__).parents[2]))


def environment(mutant: Mutant | None) -> Mapping[str, str]:
    """Return the variables of processes that have the mutant."""
    folders = [os.getcwd(), *_FOLDERS, os.environ.get("PYTHONPATH", "")]
    planted = "" if mutant is None else f"{mutant.number}:{mutant.path.absolute()}"
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), _VARIABLE: planted}


def plant() -> None:
    """Plant the mutant of the environment, where there is one."""
    number, _, path = os.environ.get(_VARIABLE, "").partition(":")
    if number:
        code = compile(mutants(Path(path))[int(number)].tree(), path, "exec")
        sys.meta_path.insert(0, _Finder(path, code))


def pytest_load_initial_conftests() -> None:
    """Come before the finder of pytest, which reads the files of a package that has a plugin."""
    sys.meta_path.sort(key=lambda finder: not isinstance(finder, _Finder))


class _Finder(MetaPathFinder):
    """Finds one module, whose file is not read."""

    def __init__(self, path: str, code: types.CodeType) -> None:
        self._path, self._code = path, code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.rpartition(".")[2] != Path(self._path).stem:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != self._path:
            return None
        spec.loader = _Loader(name, self._code)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, code: types.CodeType) -> None:
        super().__init__(name, code.co_filename)
        self._code = code

    def get_code(self, fullname: str) -> types.CodeType:
        return self._code
