"""The hashes of whole files that a sidecar states, computed and compared.

Source: mosaicml-streaming 0.13, streaming/base/hashing.py: those of hashlib, and of xxhash where it
is installed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.files.stores.transfer.concurrently import concurrently
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
    files: Iterable[tuple[StoredFile, tuple[tuple[str, str], ...]]], *, told: Told = untold
) -> Iterator[tuple[StoredFile, str | None]]:
    """Yield the files with what `hash_difference` says of each, in their order, several at once.

    A file that cannot be read is said too, as the way in which it differs. An end of the asking, or
    an interrupt, ends the reading at the next pieces.
    """
    stopped = threading.Event()

    def noting(count: int) -> None:
        if stopped.is_set():
            raise DatasetError("nobody asks any more")
        told(count)

    def looked_at(
        asked: tuple[StoredFile, tuple[tuple[str, str], ...]],
    ) -> tuple[StoredFile, str | None]:
        return asked[0], _difference(*asked, noting)

    try:
        yield from concurrently(looked_at, files, at_once=_AT_ONCE)
    finally:
        stopped.set()


def _difference(file: StoredFile, stated: tuple[tuple[str, str], ...], told: Told) -> str | None:
    try:
        return hash_difference(file, stated, told=told)
    except (DatasetError, OSError) as error:
        return f"cannot be read: {error}"


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
