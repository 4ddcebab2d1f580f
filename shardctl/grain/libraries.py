"""Grain and Keras, imported when a call needs them and not before."""

from __future__ import annotations

import importlib
from typing import Any

from shardctl.errors import MissingDependencyError


def grain(submodule: str | None = None) -> Any:
    """Return the module `grain`, or one below it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return importlib.import_module("grain" if submodule is None else f"grain.{submodule}")
    except ImportError as error:
        raise MissingDependencyError(
            f"Grain is needed for this and cannot be imported ({error}); "
            "install it with: pip install 'shardctl[grain]'"
        ) from error


def keras() -> Any:
    """Return the module `keras`, whatever its backend.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return importlib.import_module("keras")
    except ImportError as error:
        raise MissingDependencyError(
            f"Keras is needed for this and cannot be imported ({error}); "
            "install it with: pip install keras"
        ) from error
