"""Grain and Keras, imported when a call needs them and not before."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
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


def end_with_parent() -> None:
    """Let a worker process of Grain end when the process dies that it works for.

    Grain 0.2.18 ends its workers itself, but for those of a process that was killed: they would
    wait for it for ever.
    """
    workers = sys.modules.get("grain._src.python.dataset.transformations.process_prefetch")
    parent = multiprocessing.parent_process()
    if parent is None or not getattr(workers, "_is_in_worker_process", False):
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="shardctl-end-with-parent", daemon=True).start()


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
