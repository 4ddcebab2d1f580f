"""Where shardctl keeps what can be made again: counts of files, and what `verify` found."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Return where shardctl keeps what can be made again, None where there is no such place.

    >>> cache_folder({"SHARDCTL_CACHE_DIR": "/scratch/cache"})
    PosixPath('/scratch/cache')
    """
    if env.get("SHARDCTL_CACHE_DIR"):
        return Path(env["SHARDCTL_CACHE_DIR"])
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"], "shardctl")
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "shardctl"
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local", "shardctl")
    return home / ".cache" / "shardctl"
