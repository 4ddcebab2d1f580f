"""What lies at a path, on this machine or behind a URL."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

from shardctl.stores.file_text import MAX_FILE_BYTES
from shardctl.stores.remote_path import AnyPath
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
_AT_ONCE = 16  # requests


def read_file(path: AnyPath, *, max_num_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file, of at most `max_num_bytes`.

    Raises:
        DatasetError: there is no such file, or it cannot be read.
    """
    return store_of(str(path)).read(str(path), max_num_bytes=max_num_bytes)


def is_file(path: AnyPath) -> bool:
    """Return whether a file is at a path.

    Raises:
        DatasetError: the place of a remote one cannot be asked.
    """
    return store_of(str(path)).status(str(path)) is not None


def is_folder(path: AnyPath) -> bool:
    """Return whether a folder is at a path, or objects whose names begin so; raises as above."""
    return store_of(str(path)).is_folder(str(path))


def subfolders(folder: AnyPath) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones.

    Raises:
        DatasetError: it is not there, or may not be listed.
    """
    return store_of(str(folder)).subfolders(str(folder))


def files_in(folder: AnyPath) -> Iterator[StoredFile]:
    """Yield the files right in a folder, in no order; raises as above."""
    return store_of(str(folder)).scan(str(folder))


def answers(
    ask: Callable[[Asked], Answer], about: Iterable[Asked], *, at_once: bool
) -> Generator[Answer]:
    """Yield the answers to many questions in their order.

    Those about remote files are asked several `at_once`, since each waits for the network.
    """
    if not at_once:
        yield from map(ask, about)
        return
    from shardctl.stores.concurrently import concurrently

    yield from concurrently(ask, about, at_once=_AT_ONCE)
