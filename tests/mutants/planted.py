"""A mutant in place of a module, in this process and in those that it starts; no file changes."""

from __future__ import annotations

import gc
import os
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

from tests.mutants.mutations import Mutant, mutants

_ROOT = Path(__file__).parents[2]
_VARIABLE = "PLANTED_MUTANT"  # for processes that this one starts
_STARTS_PYTHON = Path(__file__).parent / "started"  # its sitecustomize.py plants the same there

Functions = dict[tuple[str, str, int], list[types.FunctionType]]


class NotLoadedFirstError(Exception):
    """A mutant that only a process plants that has not imported its module yet."""


def live_functions() -> Functions:
    """Return the functions that are in memory, by file, name and line."""
    gc.unfreeze()
    found: Functions = defaultdict(list)
    for value in gc.get_objects():
        if isinstance(value, types.FunctionType):
            found[_key(value.__code__)].append(value)
    gc.freeze()
    return found


def plant(mutant: Mutant, functions: Functions) -> None:
    """Give the module of a mutant its code, at once or when it is imported.

    Raises:
        NotLoadedFirstError: The module is loaded, and not only its functions are another's.

    """
    name = ".".join(mutant.path.with_suffix("").parts)
    path = str(mutant.path.absolute())
    code = compile(mutant.tree(), path, "exec")
    os.environ[_VARIABLE] = f"{name}:{mutant.number}:{path}"
    folders = [str(_STARTS_PYTHON), str(_ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    if name not in sys.modules:
        sys.meta_path.insert(0, _Finder(name, code))
        return
    if mutant.at_import:
        raise NotLoadedFirstError
    for inner in _codes(code):
        for function in functions.get(_key(inner), []):
            if function.__code__ != inner:
                try:
                    function.__code__ = inner
                except ValueError:  # another number of names from the function around it
                    raise NotLoadedFirstError from None


def come_first() -> None:
    """Import what is planted also where pytest imports a file that it is given by itself."""
    sys.meta_path.sort(key=lambda finder: not isinstance(finder, _Finder))


def plant_as_the_parent_did() -> None:
    """Plant the mutant, if any, of the process that started this one."""
    if _VARIABLE not in os.environ:
        return
    name, number, path = os.environ[_VARIABLE].split(":", 2)
    tree = mutants(Path(path))[int(number)].tree()
    sys.meta_path.insert(0, _Finder(name, compile(tree, path, "exec")))


def _key(code: types.CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield value
            yield from _codes(value)


class _Finder(MetaPathFinder):
    """Finds one module, whose file is not read."""

    def __init__(self, name: str, code: types.CodeType) -> None:
        self._name = name
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(name, self._code)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, code: types.CodeType) -> None:
        super().__init__(name, code.co_filename)
        self._code = code

    def get_code(self, fullname: str) -> types.CodeType:
        return self._code
