"""The version of shardctl that writes a file."""

from __future__ import annotations


def own_version() -> str:
    """Return the version of shardctl, which stands where the package begins.

    >>> own_version().count(".")
    2
    """
    from shardctl import __version__

    return __version__
