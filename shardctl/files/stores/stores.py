"""Which store has the files of a path?"""

from __future__ import annotations

import re

from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.files.stores.local import LocalStore
from shardctl.files.stores.store import Store


def is_remote(path: str) -> bool:
    """Return whether a path names its scheme.

    >>> is_remote("gs://bucket/data"), is_remote("data/mnist")
    (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) is not None


def store_of(path: str) -> Store:
    """Return the store of a path, by its scheme.

    Raises:
        MissingDependencyError: the package that reaches the place is not installed.
        DatasetError: nobody knows the scheme.
    """
    if is_remote(path):
        raise DatasetError(f"{quoted(path, 200)}: remote paths are not supported yet")
    return LocalStore()
