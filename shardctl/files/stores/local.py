"""The disks of this machine."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from shardctl.core.text import quoted
from shardctl.errors import DatasetError, NotThereError
from shardctl.files.file_text import os_reason, read_file, subfolder_names
from shardctl.files.stores.store import StoredFile

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


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

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several ranges."""
        return [self.read(start, stop) for start, stop in ranges]

    def file(self) -> BinaryIO:
        """Return the open file."""
        return self._file


class LocalStore:
    """Files and folders of this machine, by their paths."""

    def status(self, path: str) -> StoredFile | None:
        """Return the regular file at a path, None where there is none."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return _stored(path, found) if stat.S_ISREG(found.st_mode) else None

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return os.path.isdir(path)

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the regular files right in a folder, in no order; links to nowhere are left out."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        found = entry.stat()
                        if stat.S_ISREG(found.st_mode):
                            yield _stored(entry.path, found)
        except FileNotFoundError as error:
            raise NotThereError(f"cannot read {quoted(folder, 200)}: no such folder") from error
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else "no such folder"
            raise DatasetError(f"cannot read {quoted(folder, 200)}: {reason}") from error

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""
        return subfolder_names(Path(folder))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a regular file."""
        return read_file(Path(path), max_num_bytes=max_num_bytes)

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[LocalSource]:
        """Open a file; one that changed since it was listed is refused, before and after."""
        try:
            # What was put there since then, a FIFO, must not be waited for.
            opened = open(os.open(file.path, _OPEN), "rb", buffering=0)  # noqa: SIM115
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            raise DatasetError(f"cannot read {quoted(file.path, 200)}: {reason}") from error
        with opened:
            _check_same(file, os.fstat(opened.fileno()))
            yield LocalSource(opened, file.path, file.num_bytes)
        # By its path: libraries open it themselves, and another file may be there by now.
        try:
            found = os.stat(file.path)
        except OSError as error:
            raise DatasetError(f"{quoted(file.path, 200)} vanished while it was read") from error
        _check_same(file, found)


def _check_same(file: StoredFile, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or _stored(file.path, found) != file:
        raise DatasetError(f"{quoted(file.path, 200)} changed while it was read")


def _stored(path: str, found: os.stat_result) -> StoredFile:
    return StoredFile(path=path, num_bytes=found.st_size, version=f"mtime:{found.st_mtime_ns}")
