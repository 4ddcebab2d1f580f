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
from types import FunctionType, ModuleType
from typing import Any

from shardctl.base.text import choices, nearest_first, printable, quoted
from shardctl.base.tfds_rules import Loop
from shardctl.errors import UsageError
from shardctl.files.streams import redirected
from shardctl.tfds.inspecting.graph import operation_of
from shardctl.tfds.inspecting.inspect import inspected
from shardctl.tfds.inspecting.walk import Scans
from shardctl.tfds.inspecting.watch import (
    Lines,
    Returned,
    is_of_script,
    is_read_back,
    returned_by,
    shown_path,
)
from shardctl.verbs.inspect.answer import Inspection

_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w.]*)=(?P<value>.*)", re.DOTALL)
_CONFIG = "config"  # what a config is called: in arguments, in words, in --call


@dataclass(frozen=True, kw_only=True)
class ScriptFunction:
    """A function as the command line names it: `train.py:make_dataset`, `my.module:make_dataset`.

    arguments, named: what it is called with.
    expression: what is evaluated among the names of the module, in place of a function.
    config: the file whose `get_config` returns the first argument; names that begin with `config.`
        are its fields.
    """

    module: str
    function: str = ""
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    expression: str | None = None
    config: str | None = None

    @classmethod
    def parsed(
        cls,
        reference: str,
        words: Sequence[str] = (),
        *,
        expression: str | None = None,
        config: str | None = None,
    ) -> ScriptFunction:
        """Return the function that a text names, to be called with words of the command line.

        A word is a text, `name=value` an argument by its name; numbers, True, False and None are
        what they are in Python. With an expression the text may be the module alone.

        >>> made = ScriptFunction.parsed("train.py:make", ["train", "seed=7"])
        >>> made.module, made.function, made.arguments, made.named
        ('train.py', 'make', ('train',), {'seed': 7})

        Raises:
            UsageError: it names no function, or words are of no use.
        """
        # From the right: a path on Windows, or one with ":" in it, keeps its colon.
        module, colon, function = reference.rpartition(":")
        is_named = colon and module and function.isidentifier()
        if expression is not None and not is_named:
            module, function = reference, ""
        elif not is_named:
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
            is_field = match is not None and match["name"].startswith(f"{_CONFIG}.")
            if is_field and config is None:
                raise UsageError(f"{quoted(word)} sets a field of a config; give --config FILE")
            if expression is not None and not is_field:
                raise UsageError("--call has its arguments already; leave out the words after --")
        return cls(
            module=module,
            function=function,
            arguments=tuple(arguments),
            named=named,
            expression=expression,
            config=config,
        )

    def __str__(self) -> str:
        return f"{self.module}:{self.function if self.expression is None else self.expression}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let its code run in the block: its folder comes first on `sys.path`, as in Python.

        What it prints goes to stderr.

        Raises:
            UsageError: the code raises an error; the line of the script is named.
        """
        # The order of the managers: output and path are set before the module runs; errors become
        # one line.
        with _stdout_to_stderr(), self._folder_on_path(), _failing_as_usage(self):
            yield

    def called(self, is_answer: Callable[[Any], bool] = is_read_back) -> Any:
        """Return what it returns; a name that is an answer already, a dataset, is that answer.

        Raises:
            UsageError: there is no such file, module or function, or its arguments do not fit.
        """
        module = self._imported()
        config = () if self.config is None else (self._config(self.config),)
        if self.expression is not None:
            names = {**vars(module), **dict(zip([_CONFIG], config, strict=False))}
            code = compile(self.expression.strip(), "<--call>", "eval")
            found = eval(code, names)  # noqa: S307 - the user's own code, in the user's own script
            return found() if isinstance(found, FunctionType) else found
        found = self._found(module, is_answer)
        if callable(found) and not is_answer(found):
            return self._call(found, *config)
        if self.arguments or self.named or config:
            raise UsageError(f"{self} is a dataset and no function, so it takes no arguments")
        return found

    def _config(self, reference: str) -> Any:
        """Return what `get_config` of a file returns, with the words of `config.` set in it."""
        # As absl does: configs/default.py:ARGUMENT.
        path, suffix, argument = reference.rpartition(".py:")
        module = _module_of(f"{path}.py" if suffix else reference)
        make = getattr(module, "get_config", None)
        if not callable(make):
            raise UsageError(f"{quoted(reference, 200)} has no function get_config")
        config = make(argument) if suffix else make()
        for name, value in self._named(of_config=True).items():
            *parts, last = name.split(".")
            holder = config
            for part in parts:
                holder = _field(holder, part, name)
            _field(holder, last, name)
            if isinstance(holder, dict):
                holder[last] = value
            else:
                setattr(holder, last, value)
        return config

    def _named(self, *, of_config: bool) -> dict[str, Any]:
        prefix = f"{_CONFIG}."
        found = {n: v for n, v in self.named.items() if n.startswith(prefix) == of_config}
        return {name.removeprefix(prefix): value for name, value in found.items()}

    def _call(self, function: Any, *config: Any) -> Any:
        """Call a function; the config is its argument of that name, else its first one."""
        arguments, named = self.arguments, self._named(of_config=False)
        with contextlib.suppress(ValueError):  # some that are written in C have no signature
            signature = inspect.signature(function)
            if config and _CONFIG in signature.parameters:
                named[_CONFIG], config = config[0], ()
            try:
                signature.bind(*config, *arguments, **named)
            except TypeError as error:
                takes = printable(" ".join(str(signature).split()), 300)
                raise UsageError(
                    f"{self}{takes}: {error}; "
                    "its arguments are the words after --, as in -- train seed=7"
                ) from error
        return function(*config, *arguments, **named)

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
        return _module_of(self.module)

    def _found(self, module: ModuleType, is_answer: Callable[[Any], bool]) -> Any:
        found = getattr(module, self.function, None)
        if callable(found) or is_answer(found) or hasattr(found, "__next__"):
            return found
        names = [
            name
            for name, value in vars(module).items()
            # Its own functions, not what it imports.
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        there = f"; it has: {choices(nearest_first(self.function, names))}" if names else ""
        raise UsageError(f"{self.module} has no function {quoted(self.function)}{there}")

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


def _module_of(file: str) -> ModuleType:
    """Return a file as a module, run under its own name: it imports beside itself, is pickled."""
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"no file {quoted(file, 200)}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{quoted(file, 200)} is no file of Python")
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


def _field(config: Any, name: str, path: str) -> Any:
    """Return a field of a config: an item of a dict, else an attribute."""
    if isinstance(config, dict) and name in config:
        return config[name]
    if isinstance(config, dict) or not hasattr(config, name):
        names = [str(each) for each in (config if hasattr(config, "keys") else vars(config))]
        known = f"; it has: {choices(nearest_first(name, names))}" if names else ""
        raise UsageError(f"the config has no field {quoted(path)}{known}")
    return getattr(config, name)


def inspect_script(
    script: ScriptFunction,
    *,
    loop: Loop = "python",
    only: str | None = None,
    index: str | None = None,
    assume_seeds: bool = False,
    scans: Scans | None = None,
) -> tuple[Inspection, ...]:
    """Return the answers for the datasets that a function of a script returns or iterates.

    only, index: see `chosen`. scans: see `inspected`.

    Raises:
        UsageError: the function fails, or returns no dataset, or none of that name or index.
    """
    lines = Lines()
    datasets = chosen(script, lines, only=only, index=index)
    return tuple(
        inspected(one, lines=lines, loop=loop, name=name, assume_seeds=assume_seeds, scans=scans)
        for name, one in datasets.items()
    )


def chosen(
    script: ScriptFunction, lines: Lines, *, only: str | None = None, index: str | None = None
) -> dict[str, Returned]:
    """Return the datasets that a function of a script returns or iterates, by their names.

    only: the one of this name.
    index: the one of this number, or that is iterated or made at this line, as FILE:LINE.

    Raises:
        UsageError: the function fails, or returns no dataset, or none of that name or index.
    """
    with script.running():
        found = returned_by(script.called, str(script), lines)
    if only is not None and only not in found:
        names = choices([name for name in found if name] or ["no names"])
        raise UsageError(f"{script} returns no dataset {quoted(only)}; it returns: {names}")
    if index is not None:
        only = _at(script, found, index, lines)
    return found if only is None else {only: found[only]}


def _at(script: ScriptFunction, found: Mapping[str, Returned], index: str, lines: Lines) -> str:
    iterated = [one.iterated and one.iterated.line for one in found.values()]
    made = [
        lines.of(operation_of(one.dataset)) if one.read is None else None for one in found.values()
    ]
    places = [str(line or at) for line, at in zip(iterated, made, strict=True)]
    at = [n for n, place in enumerate(places) if index in (str(n), place)]
    if len(at) != 1:
        known = choices([f"{n} ({place})" for n, place in enumerate(places)])
        raise UsageError(
            f"--dataset-index {quoted(index)}: one of the datasets of {script} is needed: {known}"
        )
    return [*found][at[0]]


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
        raise UsageError(f"{script} failed with {kind}: {said}{_place(error)}{hint}") from error


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
    # TensorFlow's C++ code writes to descriptor 1, which redirect_stdout does not reach.
    with redirected(1, 2), contextlib.redirect_stdout(sys.stderr):
        yield
