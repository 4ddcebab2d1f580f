"""Finds a function of a user's script, calls it, and takes the datasets that it returns."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from shardctl.base.text import choices, nearest_first, printable, quoted
from shardctl.base.tfds_rules import Loop
from shardctl.errors import UsageError
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.inspect import Lines, inspected, is_dataset, is_of_script, shown_path
from shardctl.tfds.inspecting.walk import Scans
from shardctl.verbs.inspect.answer import Inspection

_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ScriptFunction:
    """A function as the command line names it: `train.py:make_dataset`, `my.module:make_dataset`.

    arguments, named: what it is called with.
    """

    module: str
    function: str
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parsed(cls, reference: str, words: Sequence[str] = ()) -> ScriptFunction:
        """Return the function that a text names, to be called with words of the command line.

        A word is a text, `name=value` an argument by its name; numbers, True, False and None are
        what they are in Python.

        >>> made = ScriptFunction.parsed("train.py:make", ["train", "seed=7"])
        >>> made.module, made.function, made.arguments, made.named
        ('train.py', 'make', ('train',), {'seed': 7})

        Raises:
            UsageError: it names no function.
        """
        # From the right: a path on Windows, or one with ":" in it, keeps its colon.
        module, colon, function = reference.rpartition(":")
        if not (colon and module and function.isidentifier()):
            raise UsageError(
                f"{quoted(reference, 200)} names no function; it is written as "
                "train.py:make_dataset or package.module:make_dataset"
            )
        arguments, named = [], {}
        for word in words:
            match = _NAMED.fullmatch(word)
            if match is None:
                arguments.append(_value(word))
            else:
                named[match["name"]] = _value(match["value"])
        return cls(module=module, function=function, arguments=tuple(arguments), named=named)

    def called(self, lines: Lines, is_answer: Callable[[Any], bool] = is_dataset) -> Any:
        """Return what it returns, noting the line of each dataset that it makes.

        Its folder is the first on `sys.path`, as when Python runs it; what it prints goes to
        stderr. A name that is no function but an answer already, a dataset, is that answer.

        Raises:
            UsageError: there is no such file, module or function, or it raises an error; the line
                of the script is named.
        """
        # The order of the managers: output and path are set before the module runs; errors become
        # one line; datasets are watched inside all of it.
        with _stdout_to_stderr(), self._folder_on_path(), _failing_as_usage(self), lines.watched():
            found = self._found(self._imported(), is_answer)
            if not is_answer(found):
                self._check_arguments(found)
                return found(*self.arguments, **self.named)
            if self.arguments or self.named:
                said = f"{self.module}:{self.function}"
                raise UsageError(f"{said} is a dataset and no function, so it takes no arguments")
            return found

    def _imported(self) -> ModuleType:
        if not self._is_file:
            try:
                missing = importlib.util.find_spec(self.module) is None
            # `find_spec` imports the parents of a dotted name, which may fail.
            except (ImportError, ValueError):
                missing = True
            if missing:
                raise UsageError(
                    f"no module {quoted(self.module, 200)} in this folder or installed"
                )
            return importlib.import_module(self.module)
        # A file is run under its own name as a module, so that it can import beside itself and be
        # pickled.
        path = Path(self.module)
        if not path.is_file():
            raise UsageError(f"no file {quoted(self.module, 200)}")
        spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
        if spec is None or spec.loader is None:
            raise UsageError(f"{quoted(self.module, 200)} is no file of Python")
        module = importlib.util.module_from_spec(spec)
        known = sys.modules.get(path.stem)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        # Also for KeyboardInterrupt: a half-run module must not stay in `sys.modules`.
        except BaseException:
            sys.modules.pop(path.stem, None)
            if known is not None:
                sys.modules[path.stem] = known
            raise
        return module

    def _found(self, module: ModuleType, is_answer: Callable[[Any], bool]) -> Any:
        found = getattr(module, self.function, None)
        if callable(found) or is_answer(found):
            return found
        names = [
            name
            for name, value in vars(module).items()
            # Its own functions, not what it imports.
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        there = f"; it has: {choices(nearest_first(self.function, names))}" if names else ""
        raise UsageError(f"{self.module} has no function {quoted(self.function)}{there}")

    def _check_arguments(self, function: Any) -> None:
        with contextlib.suppress(ValueError):  # some that are written in C have no signature
            signature = inspect.signature(function)
            try:
                signature.bind(*self.arguments, **self.named)
            except TypeError as error:
                takes = printable(" ".join(str(signature).split()), 300)
                raise UsageError(
                    f"{self.module}:{self.function}{takes}: {error}; "
                    "its arguments are the words after --, as in -- train seed=7"
                ) from error

    @property
    def _is_file(self) -> bool:
        return self.module.endswith(".py") or os.sep in self.module

    @contextlib.contextmanager
    def _folder_on_path(self) -> Iterator[None]:
        # As Python does: the folder of the script comes first, or the current one for a module.
        folder = os.path.dirname(os.path.abspath(self.module)) if self._is_file else os.getcwd()
        path, arguments = [*sys.path], [*sys.argv]
        sys.path.insert(0, folder)
        sys.argv[:] = [self.module]  # what a script reads of them is not meant for it
        try:
            # The lists are restored in place, since others hold on to them.
            yield
        finally:
            sys.path[:], sys.argv[:] = path, arguments


def inspect_script(
    script: ScriptFunction,
    *,
    loop: Loop = "python",
    only: str | None = None,
    scans: Scans | None = None,
) -> tuple[Inspection, ...]:
    """Return the answers for the datasets that a function of a script returns.

    only: the one of this name.

    Raises:
        UsageError: the function fails, or returns no dataset, or none of that name.
    """
    tensorflow()
    lines = Lines()
    said = f"{script.module}:{script.function}"
    datasets = datasets_of(script.called(lines), said)
    if only is not None:
        if only not in datasets:
            names = choices([name for name in datasets if name] or ["no names"])
            raise UsageError(f"{said} returns no dataset {quoted(only)}; it returns: {names}")
        datasets = {only: datasets[only]}
    return tuple(
        inspected(dataset, lines=lines, loop=loop, name=name, scans=scans)
        for name, dataset in datasets.items()
    )


def datasets_of(result: Any, said: str) -> dict[str, Any]:
    """Return the datasets that a function returned, by their names where there are several.

    It returns one, a tuple with one among others (`tfds.load(with_info=True)`), a list or a dict.

    Raises:
        UsageError: there is none.
    """
    found = _datasets_in(result)
    if not found:
        kind = "nothing" if result is None else f"a {type(result).__name__}"
        raise UsageError(f"{said} returned {kind}; a tf.data.Dataset is needed")
    return found


def _datasets_in(value: Any) -> dict[str, Any]:
    """Return the datasets that a value is or holds, by their names; one alone needs none."""
    if is_dataset(value):
        return {"": value}
    if isinstance(value, list | tuple):
        # Members of a list are named by their index.
        value = dict(enumerate(value))
    found = {
        f"{name}.{inner}" if inner else str(name): one
        for name, part in (value.items() if isinstance(value, Mapping) else ())
        for inner, one in _datasets_in(part).items()
    }
    return {"": next(iter(found.values()))} if len(found) == 1 else found


def _value(word: str) -> Any:
    # int first: "1" is a whole number, "1.0" is not.
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(word)
    return {"True": True, "False": False, "None": None}.get(word, word)


@contextlib.contextmanager
def _failing_as_usage(script: ScriptFunction) -> Iterator[None]:
    """Make one line of an error of the script, with the line of the script that it comes from."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        # For the author of the script, who wants the whole traceback.
        if os.environ.get("SHARDCTL_TRACEBACK"):
            raise
        said = printable(" ".join(str(error).split()), 500)
        kind, hint = type(error).__name__, ""
        if isinstance(error, SystemExit) and error.code == 2:  # as argparse ends
            hint = "; let a function take what is needed, and give it after --"
        raise UsageError(
            f"{script.module}:{script.function} failed with {kind}: {said}{_place(error)}{hint}"
        ) from error


def _place(error: BaseException) -> str:
    """Return the innermost line of the script's own folder, "" where the error has none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({printable(error.filename, 200)}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_of_script(frame.filename)]
    # Innermost frame of the script; libraries it calls are left out.
    if not own:
        return ""
    last = own[-1]
    line = printable(last.line or "", 200)
    return f" ({printable(shown_path(last.filename), 200)}:{last.lineno}: {line})"


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send what is printed to stderr, also by what writes to the descriptor itself."""
    # What is buffered belongs to the stdout of before.
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # it is closed, so nothing can come out of it
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        # TensorFlow's C++ code writes to descriptor 1, which redirect_stdout does not reach.
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
