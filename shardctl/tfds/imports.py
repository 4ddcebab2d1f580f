"""TensorFlow and TFDS, imported when a call needs them and not before; and without their noise."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from shardctl.errors import MissingDependencyError
from shardctl.files.silence import silent_libraries

Function = TypeVar("Function", bound=Callable[..., Any])


def tensorflow() -> Any:
    """Return the module `tensorflow`, which takes seconds and half a gigabyte to import.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return _imported("tensorflow", "TensorFlow")


def tensorflow_datasets(submodule: str | None = None) -> Any:
    """Return the module `tensorflow_datasets`, or one below it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    tensorflow()  # TFDS itself imports it late, and says less about it where it is missing
    name = "tensorflow_datasets"
    return _imported(name if submodule is None else f"{name}.{submodule}", "TFDS")


def versions() -> dict[str, str | None]:
    """Return the versions of TensorFlow and TFDS that are in use, None for what is not."""
    names = ("tensorflow", "tensorflow_datasets")
    return {name: getattr(sys.modules.get(name), "__version__", None) for name in names}


def without_autograph(function: Function) -> Function:
    """Return a function for a graph that AutoGraph leaves alone: it would rewrite it for nothing.

    That takes seconds, and warnings about code whose source it cannot find.
    """
    converted: Function = tensorflow().autograph.experimental.do_not_convert(function)
    return converted


def _imported(module: str, title: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{title} is needed for this and cannot be imported ({error}); "
            "install it with: pip install 'shardctl[tfds]'"
        ) from error


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Keep what TensorFlow says to itself, on the CPU alone, while the block runs.

    It writes from C++, in part before it knows of any log level; see `silent_libraries`.

    A graphics card that a training job uses is not touched: if TensorFlow is not loaded yet, it
    will not see any.
    """
    if "tensorflow" not in sys.modules:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with silent_libraries():
        yield
