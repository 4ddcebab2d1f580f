"""Text files and folders from anywhere: read whole, with a bound, and never waited for."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from shardctl.base.text import quoted
from shardctl.errors import DatasetError, NotThereError

MAX_FILE_BYTES = 1 << 30  # a million shards take about 20 MB
MAX_VALUES = 20_000_000  # of a document; two splits of a million shards have 2,000,000
_PIECE = 1 << 20


def read_file(path: Path, *, max_num_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a regular file.

    A pipe or a device is refused before it is opened: opening or reading it could wait forever.
    No more memory is asked for than the file has bytes; one that grows is read to its end.

    Raises:
        DatasetError: there is no such file, it is not a regular file, it may not be read, or it is
            larger than `max_num_bytes`.
    """
    shown = quoted(path, 200)
    with reading(path):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DatasetError(f"{shown} is a folder; a file is needed here")
        if not stat.S_ISREG(mode):
            raise DatasetError(f"{shown} is a pipe, a socket or a device; it must be a file")
        with path.open("rb") as file:
            data = _content(file, max_num_bytes)
    if data is None:
        raise DatasetError(f"{shown} is larger than {max_num_bytes} bytes, the most read as text")
    return data


@contextlib.contextmanager
def reading(path: Path | str, missing: str = "no such file") -> Iterator[None]:
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


def subfolder_names(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones.

    Raises:
        DatasetError: the folder is not there or may not be listed.
    """
    names = []
    with reading(folder, "no such folder"), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # links in a circle
                if entry.is_dir() and not entry.name.startswith("."):
                    names.append(entry.name)
    return sorted(names)


def working_folder() -> Path:
    """Return the working folder; `.` where it was deleted, so that relative paths alone fail."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


def absolute(path: Path | str) -> str:
    """Return a path from the root, the same file.

    Raises:
        DatasetError: it is relative to a working folder that was deleted.
    """
    try:
        return os.path.abspath(path)
    except OSError as error:
        message = f"{quoted(path, 200)}: the working folder is gone; name it from the root, as /.."
        raise DatasetError(message) from error


def os_reason(error: OSError) -> str:
    """Return what went wrong in a few words, in lower case as in the middle of a sentence."""
    if error.errno is None:
        return "it cannot be opened"
    if error.errno == errno.ENOENT:
        return "no such file"
    return os.strerror(error.errno).lower()


def decode(data: bytes, *, source: str) -> str:
    """Return UTF-8 bytes as text, without the byte order mark that some editors put in front.

    Raises:
        DatasetError: the bytes are not UTF-8, or hold a NUL, which no text does.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{source}: line {line} is not UTF-8 text (byte 0x{data[error.start]:02x})"
        ) from error
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise DatasetError(f"{source}: line {line} holds a NUL character; it is not a text file")
    return text
