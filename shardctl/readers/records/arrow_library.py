"""pyarrow, imported when a file needs it; where it cannot be, what installs one that can."""

from __future__ import annotations

import importlib
from typing import Any

from shardctl.core.provided import provided
from shardctl.core.tfds_rules import requirement_beside
from shardctl.errors import MissingDependencyError


def pyarrow_module(name: str, what: str) -> Any:
    """Return a module of pyarrow that `what` needs, as "reading parquet files".

    Raises:
        MissingDependencyError: it is not installed, or too new for the NumPy that TensorFlow takes.
    """
    try:
        importlib.import_module("pyarrow")  # not asked for again where its module is loaded
        return importlib.import_module(name)
    except ImportError as error:
        beside = requirement_beside(provided("installed_version")("tensorflow") or "", "pyarrow")
        raise MissingDependencyError(
            f"{what} needs a package: pip install '{beside or 'shardctl[files]'}'"
        ) from error
