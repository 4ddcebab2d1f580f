"""Which version of a library is installed; its package is not imported for that."""

from __future__ import annotations

from functools import cache

from shardctl.core.loaders.versions import public_version


@cache  # an order is planned many times, and nobody installs a library meanwhile
def installed_version(package: str) -> str | None:
    """Return the version of a package without what says how it was built; None without it.

    >>> installed_version("no-such-package")
    """
    from importlib import metadata  # 20 ms

    try:
        return public_version(metadata.version(package))
    except metadata.PackageNotFoundError:
        return None
