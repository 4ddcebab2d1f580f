"""The smallest change of a script that fixes the order of a stage, made in its source line.

A line is edited only where the result, read again as Python, is the script with that one argument
changed; all else is said in words.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from shardctl.base.text import printable
from shardctl.verbs.inspect.answer import Cure, Edit, SourceLine

# The arguments that fix an order: the calls of tf.data that have them, and their place there.
_PLACES: Mapping[str, Mapping[str, int]] = {
    "seed": {"shuffle": 1, "list_files": 2, "sample_from_datasets": 2, "shuffle_and_repeat": 2},
    "deterministic": {"map": 2, "batch": 3, "interleave": 4},
    "sloppy": {"parallel_interleave": 3},
}
_OPTIONS = ("deterministic", "experimental_deterministic")


def set_argument(name: str, value: object, line: SourceLine | None, call: str) -> Cure:
    """Return the cure that gives a call of tf.data on a line an argument, in place of its own.

    call: what the call is named where the line does not show it.
    """
    script = Script.of(line)
    node = None if script is None else script.call_of(line, _PLACES[name])
    if script is None or node is None:
        return _in_words(f"{name}={value} in {call}", line)
    return script.with_argument(node, name, str(value), _PLACES[name][_name(node)])


def set_shuffle_seed(seed: int, line: SourceLine | None) -> Cure:
    """Return the cure that gives the ReadConfig of a call of TFDS a seed."""
    script, text = Script.of(line), f"shuffle_seed={seed} in ReadConfig"
    node = None if script is None else script.call_of(line, ("load", "as_dataset"))
    if script is None or node is None:
        return _in_words(text, line)
    given: ast.expr | None = next(
        (one.value for one in node.keywords if one.arg == "read_config"), None
    )
    if isinstance(given, ast.Name):
        given = script.assigned(given, node)
    if isinstance(given, ast.Call) and _name(given) == "ReadConfig":
        return script.with_argument(given, "shuffle_seed", str(seed))
    if given is None and (tfds := script.name_of_tfds(node)) is not None:
        made = f"{tfds}.ReadConfig(shuffle_seed={seed})"
        return script.with_argument(node, "read_config", made)
    return _in_words(text, line)


def set_options(lines: Iterable[SourceLine | None]) -> Cure:
    """Return the cure that makes the options deterministic which `with_options` on lines set."""
    text, where = "deterministic=True in the options", None
    for where in dict.fromkeys(filter(None, lines)):
        script = Script.of(where)
        found = None if script is None else script.options_set_near(where)
        if script is not None and found is not None:
            return script.edited(found.value, "True", text)
    return _in_words(text, where)


def _in_words(text: str, line: SourceLine | None) -> Cure:
    if line is not None and _is_of_library(line):
        start = "tf.random.set_seed(0) before the dataset is made, or "
        text = f"{start * text.startswith('seed=')}{text}, in a library"
        return Cure(text=text, line=line, is_known=False)
    return Cure(text=text, line=line)


def _is_of_library(line: SourceLine) -> bool:
    # site-packages or dist-packages
    return "-packages" + os.sep in os.path.abspath(line.file)


class Script:
    """A script as text and as a tree, in which one place is edited."""

    def __init__(self, file: str, text: bytes) -> None:
        self._file, self._text, self._tree = file, text, ast.parse(text)
        # As Python counts lines, which end with nothing but these.
        rows = re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
        self._starts = [*accumulate(map(len, rows), initial=0)]

    @classmethod
    def of(cls, line: SourceLine | None) -> Script | None:
        """Return the script that has a line, None where it is none to be edited."""
        if line is None or _is_of_library(line):
            return None
        try:
            text = Path(line.file).read_bytes()
            text.decode()  # columns count bytes of UTF-8
            return cls(line.file, text)
        except (OSError, ValueError, SyntaxError, RecursionError):
            return None

    def call_of(self, line: SourceLine | None, names: Iterable[str]) -> ast.Call | None:
        """Return the call that ran at a line, or the one in its arguments, by its names."""
        # Calls end with a bracket of their own, so no two of them end at one place.
        end = None if line is None else line.end
        for node in _calls(self._tree):
            if end is not None and (node.end_lineno, node.end_col_offset) == end:
                inner = [node, *(one for one in _calls(node) if one is not node)]
                named = [one for one in inner if _name(one) in tuple(names)]
                # `ds.apply(parallel_interleave(..))` runs `apply`.
                return named[0] if named[:1] == [node] or len(named) == 1 else None
        return None

    def with_argument(
        self, call: ast.Call, name: str, value: str, place: int | None = None
    ) -> Cure:
        """Return the cure that gives a call an argument, which it may have by its place or name."""
        text, line = f"{name}={value} in {_name(call)}", self._line(call)
        given = [one.value for one in call.keywords if one.arg == name]
        # What is unpacked may have the argument.
        unpacked = any(isinstance(one, ast.Starred) for one in call.args)
        if place is not None and len(call.args) > place and not unpacked:
            given.append(call.args[place])
        if given:
            if isinstance(given[0], ast.Constant):
                return self.edited(given[0], value, text)
            said = printable(ast.unparse(given[0]), 60)
            return Cure(text=f"{text}, in place of {said}", line=line)
        if unpacked or any(one.arg is None for one in call.keywords):
            return Cure(text=text, line=line)
        last = max((*call.args, *(one.value for one in call.keywords)), key=_end, default=None)
        stop = self._at(*(_end(call) if last is None else _end(last))) - (last is None)
        call.keywords.append(ast.keyword(arg=name, value=ast.parse(value, mode="eval").body))
        new = f"{name}={value}" if last is None else f", {name}={value}"
        return self._checked(Edit(file=self._file, start=stop, stop=stop, new=new), text, line)

    def edited(self, node: Any, value: str, text: str) -> Cure:
        """Return the cure that puts a value in the place of a constant."""
        start, stop = self._at(node.lineno, node.col_offset), self._at(*_end(node))
        line, node.value = self._line(node), ast.literal_eval(value)
        return self._checked(Edit(file=self._file, start=start, stop=stop, new=value), text, line)

    def _checked(self, edit: Edit, text: str, line: SourceLine) -> Cure:
        """Return the cure of an edit; in words where Python reads it otherwise than was meant."""
        made = _applied(self._text, [edit])
        try:
            is_right = ast.dump(ast.parse(made)) == ast.dump(self._tree)
        except (SyntaxError, ValueError):
            is_right = False
        if not is_right:
            return Cure(text=text, line=line)
        code = _row(made, self._starts[bisect_right(self._starts, edit.start) - 1])
        return Cure(text=text, line=line, code=code, edit=edit)

    def assigned(self, name: ast.Name, near: ast.AST) -> ast.expr | None:
        """Return the one value that a name is given in the function around a node, or the file."""
        for scope in self._scopes(near):
            nodes = list(_of_scope(scope))
            stored = [n for n in nodes if isinstance(n, ast.Name) and n.id == name.id]
            stored = [n for n in stored if not isinstance(n.ctx, ast.Load)]
            if not stored:
                continue
            # `config.shuffle_seed = ..` later counts more than its call.
            later = any(isinstance(n, ast.Attribute) and n.attr == "shuffle_seed" for n in nodes)
            values = [n.value for n in nodes if isinstance(n, ast.Assign) and n.targets == stored]
            return values[0] if len(values) == 1 and not later else None
        return None

    def options_set_near(self, line: SourceLine) -> Any:
        """Return the one assignment of False to `options.deterministic` around a line."""
        for scope in self._scopes(line):
            found = [
                n
                for n in _of_scope(scope)
                if isinstance(n, ast.Assign)
                and any(isinstance(t, ast.Attribute) and t.attr in _OPTIONS for t in n.targets)
                and isinstance(n.value, ast.Constant)
                and n.value.value is False
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def name_of_tfds(self, call: ast.Call) -> str | None:
        """Return what the script calls TFDS, None where it does not import the whole of it."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if _name(call) == "load" and isinstance(owner, ast.Name):
            return owner.id
        imported = (
            one for node in self._tree.body if isinstance(node, ast.Import) for one in node.names
        )
        names = (one.asname or one.name for one in imported if one.name == "tensorflow_datasets")
        return next(names, None)

    def _scopes(self, near: Any) -> Sequence[ast.AST]:
        """Return the functions around a line, the innermost first, and the file."""
        at = near.line if isinstance(near, SourceLine) else near.lineno
        around = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef) and node.lineno <= at <= (node.end_lineno or 0)
        ]
        return (*reversed(around), self._tree)

    def _line(self, node: Any) -> SourceLine:
        # Of a chain of calls over several lines it is the one with the name.
        call: Any = node.func if isinstance(node, ast.Call) else node
        number = call.end_lineno
        text = _row(self._text, self._starts[number - 1])
        return SourceLine(file=self._file, line=number, text=text)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or file, but not those of functions within it."""
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        yield node
        inner = ast.iter_child_nodes(node)
        waiting += [one for one in inner if not isinstance(one, ast.FunctionDef | ast.Lambda)]


def _row(text: bytes, start: int) -> str:
    return text[start:].splitlines()[0].decode().strip()


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _name(call: ast.Call) -> str:
    """Return the last name of what is called, "" where it has none."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _applied(text: bytes, edits: Iterable[Edit]) -> bytes:
    # From the end, so that those before keep their places.
    for edit in sorted(set(edits), key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new.encode() + text[edit.stop :]
    return text


def patch_of(cures: Iterable[Cure]) -> Iterator[str]:
    """Yield the edits of cures as a unified diff, file by file, for `patch -p0`."""
    edits: dict[str, list[Edit]] = defaultdict(list)
    for cure in cures:
        if cure.edit is not None:
            edits[cure.edit.file].append(cure.edit)
    for file, own in edits.items():
        text = Path(file).read_bytes()
        old, new = (
            re.findall(r"[^\n]*\n|[^\n]+", one.decode()) for one in (text, _applied(text, own))
        )
        name = f"{file}\t" if " " in file else file
        for line in difflib.unified_diff(old, new, name, name):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
