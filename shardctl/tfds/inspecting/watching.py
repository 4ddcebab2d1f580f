"""Which line of a script makes each dataset: watched while the script runs, and then undone.

A `tf.data.Dataset` keeps no trace of who made it. While a script is watched, each dataset is made
under a name of its own (the name that `ds.map(f, name=..)` gives), which TensorFlow keeps in the
graph; nothing that reads depends on it.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import FrameType
from typing import Any

from shardctl.planning.inspect import SourceLine
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.recognizing.graph import Operation

_PREFIX = "shardctl:"
_TOKEN = "_shardctl_token"  # noqa: S105 - the attribute of a dataset that has its name
# Packages whose code makes datasets because a script asked them to.
_LIBRARIES = ("tensorflow", "tensorflow_datasets", "keras", "tf_keras", "tree", "etils", "wrapt")

Key = str | tuple[Any, ...]


class Lines:
    """The lines that made the datasets of a script."""

    def __init__(self) -> None:
        self._by_key: dict[Key, SourceLine] = {}
        self._count = 0
        self._made: list[Any] = []  # kept, so that no two have one name

    def of(self, operation: Operation) -> SourceLine | None:
        """Return the line that made an operation, None where nobody watched."""
        return self._by_key.get(_key_of_operation(operation))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note who makes datasets while the block runs."""
        from tensorflow.python.data.ops import dataset_ops  # no public name

        kind = dataset_ops.DatasetV2
        plain_init, plain_metadata = kind.__init__, kind._metadata
        lines = self

        def init(dataset: Any, *args: Any, **kwargs: Any) -> None:
            plain_init(dataset, *args, **kwargs)
            lines.note(dataset)

        def metadata(dataset: Any) -> Any:
            found = plain_metadata.fget(dataset)
            found.name = lines.token(dataset).encode()
            return found

        kind.__init__, kind._metadata = init, property(metadata)
        try:
            yield
        finally:
            kind.__init__, kind._metadata = plain_init, plain_metadata

    def token(self, dataset: Any) -> str:
        """Return the name under which a dataset is made."""
        if _TOKEN not in dataset.__dict__:
            self._count += 1
            dataset.__dict__[_TOKEN] = f"{_PREFIX}{self._count}"
        token: str = dataset.__dict__[_TOKEN]
        return token

    def note(self, dataset: Any) -> None:
        """Keep the line that makes a dataset, which is that of the caller."""
        line = _line_of_script(sys._getframe(2))
        self._made.append(dataset)
        if line is not None:
            with contextlib.suppress(NotImplementedError, AttributeError):
                self._by_key.setdefault(_key_of_dataset(dataset), line)


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
            return SourceLine(file=_shown(path), line=frame.f_lineno, text=text)
        frame = frame.f_back
    return None


def _shown(path: str) -> str:
    """Return a path from here where the file lies below, else as it is."""
    shown = os.path.relpath(path)
    return path if shown.startswith(os.pardir) else shown


def is_of_script(path: str) -> bool:
    """Return whether a file is no part of Python, TensorFlow or a library that makes datasets."""
    return not (path.startswith("<") or _is_library(path))


def _is_library(path: str) -> bool:
    return path.startswith(_roots()) or _is_of_python(path)


def _is_of_python(path: str) -> bool:
    library = sysconfig.get_paths()["stdlib"]
    return path.startswith(library + os.sep) and "-packages" + os.sep not in path


def _roots() -> tuple[str, ...]:
    tensorflow()
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [here]
    for name in _LIBRARIES:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            folders.append(os.path.dirname(file))
    return tuple(folder + os.sep for folder in folders)
