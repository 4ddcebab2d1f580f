"""Files and folders wherever they are: a store for each place, and the disks of this machine.

Remote places are reached as fsspec reaches them, whose file systems `etils.epath` uses too:
`pip install tensorflow-datasets` brings fsspec along (etils[epath] asks for it), and a login that
works for one works for the other. Not through epath itself: it tells no versions and reads no
ranges, only files that read ahead; and where TensorFlow is installed it asks tf.io.gfile instead,
which knows gs:// alone.

Paths are whole texts here, `gs://bucket/a` or `/data/a`: `pathlib.Path` makes one slash of two.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from shardctl.base.text import quoted
from shardctl.errors import DatasetError, NotThereError
from shardctl.stores.paths import AnyPath, scheme_of
from shardctl.stores.store import Store, StoredFile

MAX_FILE_BYTES = 1 << 30  # of a file read as a whole; a million shards take about 20 MB
_AT_ONCE = 16  # requests
_PIECE = 1 << 20
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def store_of(path: AnyPath | str) -> Store:
    """Return the store of a path, by its scheme.

    Raises:
        MissingDependencyError: the package that reaches the place is not installed.
        DatasetError: nobody knows the scheme, or there are several.
    """
    scheme = scheme_of(str(path))
    if scheme is None:
        return _DISKS
    from shardctl.stores.remote import public_store

    return public_store(scheme)


# What lies at a path of either kind; each raises DatasetError where a place cannot be asked.


def read_file(path: AnyPath, *, max_num_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file, of at most `max_num_bytes`."""
    return store_of(path).read(str(path), max_num_bytes=max_num_bytes)


def is_file(path: AnyPath) -> bool:
    """Return whether a file is at a path."""
    return store_of(path).status(str(path)) is not None


def is_folder(path: AnyPath) -> bool:
    """Return whether a folder is at a path, or objects whose names begin so."""
    return store_of(path).is_folder(str(path))


def subfolders(folder: AnyPath) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones."""
    return store_of(folder).subfolders(str(folder))


def files_in(folder: AnyPath) -> Iterator[StoredFile]:
    """Yield the files right in a folder, in no order."""
    return store_of(folder).scan(str(folder))


def answers(
    ask: Callable[[Item], Answer], about: Iterable[Item], *, at_once: bool
) -> Generator[Answer]:
    """Yield the answers to many questions in their order.

    Those about remote files are asked several `at_once`, since each waits for the network.
    """
    if not at_once:
        yield from map(ask, about)
        return
    from shardctl.stores.concurrently import concurrently

    yield from concurrently(ask, about, at_once=_AT_ONCE)


class LocalSource:
    """An open file of a disk."""

    def __init__(self, file: BinaryIO, path: str, num_bytes: int) -> None:
        self._file = file
        self.local_path: str | None = path
        self.num_bytes = num_bytes

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop), fewer where the file became shorter."""
        self._file.seek(start)
        return self._file.read(stop - start)

    def file(self) -> BinaryIO:
        """Return the open file."""
        return self._file


class LocalStore:
    """Files and folders of this machine, by their paths; see `Store`."""

    def status(self, path: str) -> StoredFile | None:
        """Return the regular file at a path."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return _stored(path, found) if stat.S_ISREG(found.st_mode) else None

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return os.path.isdir(path)

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the regular files right in a folder."""
        with reading(folder, "no such folder"), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    if stat.S_ISREG(found.st_mode):
                        yield _stored(entry.path, found)

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder."""
        names = []
        with reading(folder, "no such folder"), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # links in a circle
                    if entry.is_dir() and not entry.name.startswith("."):
                        names.append(entry.name)
        return sorted(names)

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a regular file.

        A pipe or a device is refused before it is opened: opening or reading it could wait forever.
        No more memory is asked for than the file has bytes; one that grows is read to its end.
        """
        shown = quoted(path, 200)
        with reading(path):
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                raise DatasetError(f"{shown} is a folder; a file is needed here")
            if not stat.S_ISREG(mode):
                raise DatasetError(f"{shown} is a pipe, a socket or a device; it must be a file")
            with Path(path).open("rb") as file:
                data = _content(file, max_num_bytes)
        if data is None:
            raise DatasetError(
                f"{shown} is larger than {max_num_bytes} bytes, the most read as text"
            )
        return data

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[LocalSource]:
        """Open a file; one that changed since it was listed is refused, before and after."""
        with reading(file.path):
            # What was put there since then, a FIFO, must not be waited for.
            opened = open(os.open(file.path, _OPEN), "rb", buffering=0)  # noqa: SIM115
        with opened:
            _check_same(file, os.fstat(opened.fileno()))
            yield LocalSource(opened, file.path, file.num_bytes)
        # By its path: libraries open it themselves, and another file may be there by now.
        try:
            found = os.stat(file.path)
        except OSError as error:
            raise DatasetError(f"{quoted(file.path, 200)} vanished while it was read") from error
        _check_same(file, found)


_DISKS = LocalStore()


@contextlib.contextmanager
def reading(path: str, missing: str = "no such file") -> Iterator[None]:
    """Make what the system says of a path a DatasetError of one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotThereError(f"cannot read {quoted(path, 200)}: {missing}") from error
    except OSError as error:
        raise DatasetError(f"cannot read {quoted(path, 200)}: {os_reason(error)}") from error
    except ValueError as error:
        message = f"cannot read {quoted(path, 200)}: no path holds a NUL character"
        raise DatasetError(message) from error


def os_reason(error: OSError) -> str:
    """Return what went wrong in a few words, in lower case as in the middle of a sentence."""
    if error.errno is None:
        return "it cannot be opened"
    return "no such file" if error.errno == errno.ENOENT else os.strerror(error.errno).lower()


def _content(file: BinaryIO, max_num_bytes: int) -> bytes | None:
    """Return the bytes of an open file, None where they are more than `max_num_bytes`."""
    size = os.fstat(file.fileno()).st_size
    if size > max_num_bytes:
        return None
    data = file.read(size + 1)
    if len(data) <= size:
        return data
    pieces, num_bytes = [data], len(data)  # it grows, or lies in /proc, where no file has a size
    while num_bytes <= max_num_bytes and (piece := file.read(_PIECE)):
        pieces.append(piece)
        num_bytes += len(piece)
    return b"".join(pieces) if num_bytes <= max_num_bytes else None


def _check_same(file: StoredFile, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or _stored(file.path, found) != file:
        raise DatasetError(f"{quoted(file.path, 200)} changed while it was read")


def _stored(path: str, found: os.stat_result) -> StoredFile:
    return StoredFile(path=path, num_bytes=found.st_size, version=f"mtime:{found.st_mtime_ns}")
