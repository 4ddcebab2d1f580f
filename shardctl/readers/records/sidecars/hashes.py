"""The hashes of whole files that a sidecar states, computed and compared.

Source: mosaicml-streaming 0.13, streaming/base/hashing.py: those of hashlib, and of xxhash where it
is installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shardctl.core.text import quoted
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.readers.records.contents import Told, untold

_PIECE = 1 << 22
_AT_ONCE = 8
_XXHASH = "xxh"


def hash_difference(
    file: StoredFile, stated: Iterable[tuple[str, str]], *, told: Told = untold
) -> str | None:
    """Return which hash of a file is not as stated, None where all that are known here are.

    Raises:
        DatasetError: the file cannot be read.
    """
    known = [(name, value, made()) for name, value in stated if (made := _hash(name)) is not None]
    if not known:
        return None
    with store_of(file.path).open(file) as source:
        for start in range(0, source.num_bytes, _PIECE):
            piece = source.read(start, min(start + _PIECE, source.num_bytes))
            for _, _, hashed in known:
                hashed.update(piece)
            told(len(piece))
    for name, value, hashed in known:
        found = hashed.hexdigest()
        if found != value:
            return f"has {name} {found}, not {quoted(value, 80)}"
    return None


def hash_differences(
    files: Iterable[tuple[StoredFile, tuple[tuple[str, str], ...]]],
) -> Iterator[tuple[StoredFile, str | None]]:
    """Yield the files with what `hash_difference` says of each, in their order, several at once."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="shardctl") as threads:
        waiting = [(file, threads.submit(hash_difference, file, stated)) for file, stated in files]
        for file, answer in waiting:
            yield file, answer.result()


def unknown_hashes(names: Iterable[str]) -> list[str]:
    """Return the algorithms that are not known here, sorted.

    >>> unknown_hashes(["sha1", "crc0"])
    ['crc0']
    """
    return sorted({name for name in names if _hash(name) is None})


def _hash(name: str) -> Callable[[], Any] | None:
    if name in hashlib.algorithms_available and not name.startswith("shake_"):
        made: Callable[[], Any] | None = getattr(hashlib, name, None)
        return made
    if not name.startswith(_XXHASH):
        return None
    try:
        import xxhash
    except ImportError:
        return None
    return getattr(xxhash, name, None)
