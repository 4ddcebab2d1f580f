"""Which line of a script makes each dataset: watched while the script runs, and then undone.

A `tf.data.Dataset` keeps no trace of who made it. While a script is watched, each dataset is made
under a name of its own (the name that `ds.map(f, name=..)` gives), which TensorFlow keeps in the
graph; nothing that reads depends on it.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import Operation
from shardctl.verbs.inspect.answer import SourceLine

_PREFIX = "shardctl:"
_TOKEN = "_shardctl_token"  # noqa: S105 - the attribute of a dataset that has its name
# Packages whose code makes datasets because a script asked them to.
_LIBRARIES = ("tensorflow", "tensorflow_datasets", "keras", "tf_keras", "tree", "etils", "wrapt")

Key = str | tuple[Any, ...]


class Lines:
    """The lines that made the datasets of a script."""

    def __init__(self) -> None:
        self._by_key: dict[Key, SourceLine] = {}
        self._made: list[Any] = []  # kept, so that no two have one name

    def of(self, operation: Operation) -> SourceLine | None:
        """Return the line that made an operation, None where nobody watched."""
        return self._by_key.get(_key_of_operation(operation))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note who makes datasets while the block runs, in this thread."""
        watching = _watching_here()
        with _patched():
            watching.append(self)
            try:
                yield
            finally:
                watching.remove(self)

    def note(self, dataset: Any, line: SourceLine | None) -> None:
        """Note the line that made a dataset."""
        self._made.append(dataset)
        if line is not None:
            with contextlib.suppress(NotImplementedError, AttributeError):
                self._by_key.setdefault(_key_of_dataset(dataset), line)


@contextlib.contextmanager
def _patched() -> Iterator[None]:
    """Let datasets tell those who watch their thread; undone when the last thread is through."""
    from tensorflow.python.data.ops import dataset_ops  # no public name

    kind = dataset_ops.DatasetV2
    with _lock:
        plain = _plain[0] if _plain else (kind.__init__, kind._metadata)
        if not _plain:
            kind.__init__, kind._metadata = _watched_class(*plain)
        _plain.append(plain)
    try:
        yield
    finally:
        with _lock:
            _plain.pop()
            if not _plain:
                kind.__init__, kind._metadata = plain


def _watched_class(plain_init: Any, plain_metadata: Any) -> tuple[Any, Any]:
    """Return `__init__` and `_metadata` of datasets, which tell those who watch this thread."""

    def init(dataset: Any, *args: Any, **kwargs: Any) -> None:
        plain_init(dataset, *args, **kwargs)
        for lines in _watching_here():
            lines.note(dataset, _line_of_script(sys._getframe(1)))

    def metadata(dataset: Any) -> Any:
        found = plain_metadata.fget(dataset)
        if _watching_here():
            found.name = _token(dataset).encode()
        return found

    return init, property(metadata)


_lock = threading.Lock()
_plain: list[tuple[Any, Any]] = []  # what datasets are without it, once for each that watches
_numbers = itertools.count(1)  # over all scripts, since a dataset of one may be used in another
_threads = threading.local()


def _watching_here() -> list[Lines]:
    """Return who watches this thread."""
    found: list[Lines] = _threads.__dict__.setdefault("watching", [])
    return found


def _token(dataset: Any) -> str:
    """Return the name under which a dataset is made, which no other has."""
    if _TOKEN not in dataset.__dict__:
        dataset.__dict__[_TOKEN] = f"{_PREFIX}{next(_numbers)}"
    token: str = dataset.__dict__[_TOKEN]
    return token


def _key_of_dataset(dataset: Any) -> Key:
    """Return the name of a dataset; of one that takes none the names of what it reads."""
    token: str | None = dataset.__dict__.get(_TOKEN)
    if token is not None:
        return token
    return tuple(_key_of_dataset(each) for each in dataset._inputs())


def _key_of_operation(operation: Operation) -> Key:
    name = operation.object_name
    if name is not None and name.startswith(_PREFIX):
        return name
    return tuple(_key_of_operation(each) for each in operation.inputs)


def _line_of_script(frame: FrameType | None) -> SourceLine | None:
    """Return the innermost line that is no library's that makes datasets for others."""
    while frame is not None:
        path = frame.f_code.co_filename
        if is_of_script(path):
            text = linecache.getline(path, frame.f_lineno).strip()
            return SourceLine(file=shown_path(path), line=frame.f_lineno, text=text)
        frame = frame.f_back
    return None


def shown_path(path: str) -> str:
    """Return a path from here where the file lies below, else as it is."""
    shown = os.path.relpath(path)
    return path if shown.startswith(os.pardir) else shown


def is_of_script(path: str) -> bool:
    """Return whether a file is no part of Python, TensorFlow or a library that makes datasets."""
    library = sysconfig.get_paths()["stdlib"] + os.sep
    of_python = path.startswith(library) and "-packages" + os.sep not in path
    return not (path.startswith(("<", *_roots())) or of_python)


def _roots() -> Iterator[str]:
    tensorflow()
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _LIBRARIES]
    for file in (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *files):
        if file is not None:
            yield os.path.dirname(file) + os.sep
