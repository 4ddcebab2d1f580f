"""TensorFlow and TFDS, imported when a call needs them and not before; and without their noise."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from shardctl.errors import MissingDependencyError

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

    TensorFlow writes to the file descriptor 2 from C++, in part before it knows of any log level,
    so that descriptor leads to /dev/null meanwhile; `sys.stderr` writes where it did. Python's
    logging and warnings are silent too. With SHARDCTL_TRACEBACK set everything is shown.

    A graphics card that a training job uses is not touched: if TensorFlow is not loaded yet, it
    will not see any.
    """
    if "tensorflow" not in sys.modules:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if os.environ.get("SHARDCTL_TRACEBACK"):
        yield
        return
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _without_descriptor_2():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


@contextlib.contextmanager
def _without_descriptor_2() -> Iterator[None]:
    try:
        kept = os.dup(2)
    except OSError:  # it is closed, so nothing can come out of it
        yield
        return
    own = sys.stderr
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        if _is_descriptor_2(own):
            sys.stderr = open(kept, "w", buffering=1, errors=own.errors, closefd=False)  # noqa: SIM115  # closed below
        yield
    finally:
        if sys.stderr is not own:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.close()
            sys.stderr = own
        os.dup2(kept, 2)
        os.close(kept)


def _is_descriptor_2(stream: object) -> bool:
    try:
        return stream.fileno() == 2  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, OSError, ValueError):
        return False
