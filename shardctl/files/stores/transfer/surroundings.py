"""What clients that are kept depend on: the process, and the variables that they were made of."""

from __future__ import annotations

import os

Surroundings = tuple[object, ...]


def surroundings(*prefixes: str) -> Surroundings:
    """Return a key that is another in a forked process, and after a login by variables.

    Connections and event loops of fsspec do not outlive a fork, and in a notebook a variable that
    is set after an error must count.
    """
    names = ("FSSPEC_", "SHARDCTL_REMOTE_", *prefixes)
    found = sorted(item for item in os.environ.items() if item[0].startswith(names))
    return (os.getpid(), *found)
