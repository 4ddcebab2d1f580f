"""Imports TensorFlow and TFDS when a call needs them, and keeps their output away from answers."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from shardctl.base.install import to_install
from shardctl.base.text import printable
from shardctl.base.tfds_rules import ORDER_RULES, install_command, is_newer_than_known
from shardctl.errors import MissingDependencyError, UnprovenVersionWarning
from shardctl.files.streams import silent_libraries
from shardctl.metadata.loader_versions import installed_version

Function = TypeVar("Function", bound=Callable[..., Any])
Tell = Callable[[Iterable[str]], None]

_PACKAGES = ("tensorflow", "tensorflow-cpu")  # each of them is the module `tensorflow`


def tensorflow() -> Any:
    """Return the module `tensorflow`, which takes seconds and half a gigabyte to import.

    The first one newer than what orders were compared with gets a warning.

    Raises:
        MissingDependencyError: it is not installed, or broken.
    """
    module = _imported("tensorflow", "TensorFlow")
    version = str(getattr(module, "__version__", ""))
    if version not in _seen:
        _seen.add(version)
        if is_newer_than_known(version):
            _tell[-1](
                [
                    f"TensorFlow {version} is newer than any whose orders were compared with "
                    f"these rules ({ORDER_RULES.tensorflow}): it may read in another order; "
                    "`shardctl verify` compares what it reads here"
                ]
            )
    return module


def tensorflow_datasets(submodule: str | None = None) -> Any:
    """Return the module `tensorflow_datasets`, or one below it.

    Raises:
        MissingDependencyError: it is not installed, or broken.
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
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no command's answer
            return importlib.import_module(module)
    # MissingDependencyError for a broken installation too: to the user both are the same problem.
    except Exception as error:  # of any kind where a package that it imports is too new or too old
        said = printable(str(error).partition("\n")[0] or type(error).__name__, 300)
        raise MissingDependencyError(
            f"{title} is needed for this and cannot be imported ({said}); "
            f"install it with: {_cure()}"
        ) from error


def _cure() -> str:
    """Return the command that installs TFDS beside the TensorFlow that is here."""
    for package in _PACKAGES:
        # The first that is installed: the command keeps the user's TensorFlow.
        version = installed_version(package)
        if version is not None:
            return install_command(version, package)
    return to_install("tensorflow", "tensorflow-datasets")


def _warn(messages: Iterable[str]) -> None:
    """Warn whoever called shardctl, from their own line."""
    level, frame = 1, sys._getframe()
    # Up to the first frame outside this package, so that the warning shows the user's line.
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").partition(".")[0] == "shardctl"
    ):
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(message, UnprovenVersionWarning, stacklevel=level)


_seen: set[str] = set()  # versions of TensorFlow that were looked at
# A stack: `quiet_tensorflow` may be nested.
_tell: list[Tell] = [_warn]  # the last one is who gets warnings now


@contextlib.contextmanager
def quiet_tensorflow(tell: Tell | None = None) -> Iterator[None]:
    """Keep what TensorFlow says to itself, on the CPU alone, while the block runs.

    tell: takes what shardctl itself has to say of TensorFlow, after the block.

    It writes from C++, in part before it knows of any log level; see `silent_libraries`.

    A graphics card that a training job uses is not touched: if TensorFlow is not loaded yet, it
    will not see any.
    """
    # Before TensorFlow is loaded; later these variables may have no effect.
    if "tensorflow" not in sys.modules:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept: list[str] = []
    _tell.append(kept.extend)
    try:
        with silent_libraries():
            yield
    finally:
        _tell.pop()
        # After the block: output is silenced within it. Without `tell` it goes to the one outside.
        (tell or _tell[-1])(kept)
