"""The functions of a script, found without running it."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from shardctl.base.text import counted, path_word, printable, quoted, shell_line
from shardctl.errors import UsageError
from shardctl.stores.stores import read_file

_MOST = 20  # functions that people are shown
# What code names that makes a dataset, or iterates one.
_OF_DATASETS = re.compile(
    r"\b(as_dataset|as_numpy|as_numpy_iterator|batch|prefetch|shuffle|repeat|from_tensor_slices|"
    r"TFRecordDataset|Dataset|Iterator|Iterable|Generator|tfds\.load)\b"
)


def is_script(reference: str) -> bool:
    """Return whether a text names a file of Python, and no function of it."""
    return reference.endswith((".py", ".py:")) and os.path.isfile(reference.rstrip(":"))


def functions_to_name(reference: str, command: str) -> tuple[list[str], UsageError]:
    """Return the functions of a script that was named alone, as lines, and the error that it is."""
    path = reference.rstrip(":")
    shown = quoted(path, 200)
    try:
        found = functions_of(read_file(Path(path)))
    except SyntaxError as error:
        line = f"line {error.lineno} of " if error.lineno else ""
        return [], UsageError(f"{line}{shown} is not Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        return [], UsageError(f"{shown} cannot be read as Python")
    if not found:
        return [], UsageError(f"{shown} has no function; write one that returns a tf.data.Dataset")
    lines = [f"functions of {printable(path)}, which was not run, those that make datasets first:"]
    lines += [
        printable(f"  line {one.lineno}: {one.name}({ast.unparse(one.args)})", 300)
        for one in found[:_MOST]
    ]
    lines += [f"  and {len(found) - _MOST} more"] if len(found) > _MOST else []
    free = (one for one in found if not needs_arguments(one))
    typed = path_word(f"{path}:{next(free, found[0]).name}")
    lines += [f"{command} one of them:", f"  {shell_line('shardctl', command, typed)}"]
    said = f"{counted(len(found), 'function')}; name one, as in FILE:FUNCTION"
    return lines, UsageError(f"{shown} is a script with {said}")


def functions_of(text: bytes) -> list[ast.FunctionDef]:
    """Return the public functions at the top level of a script, in the order of their lines.

    First come those whose code looks as if it made a dataset, or iterated one.

    >>> text = b"def main(): pass\\ndef make(split): return tfds.load('toy', split=split)"
    >>> [found.name for found in functions_of(text)]
    ['make', 'main']

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is no Python, or nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    functions = (node for node in _statements(tree) if isinstance(node, ast.FunctionDef))
    by_name = {one.name: one for one in functions if not one.name.startswith("_")}
    return sorted(by_name.values(), key=lambda one: (not _shows_dataset(one), one.lineno))


def _shows_dataset(function: ast.FunctionDef) -> bool:
    gives = (ast.Yield, ast.YieldFrom, ast.Return)
    returns = any(isinstance(node, gives) and node.value for node in ast.walk(function))
    return returns and _OF_DATASETS.search(ast.unparse(function)) is not None


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when a module is imported, also below `if`, `try` and `with`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _statements(child)


def needs_arguments(function: ast.FunctionDef) -> bool:
    """Return whether a function has an argument without a default."""
    taken = function.args
    by_place = len(taken.posonlyargs) + len(taken.args)
    return by_place > len(taken.defaults) or None in taken.kw_defaults
