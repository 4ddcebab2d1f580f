"""The one place that writes: data to stdout or to a file, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from shardctl.core.quoting import choices, printable, quoted
from shardctl.errors import ShardctlError, UsageError
from shardctl.rendering.screen import Screen


def check_format(chosen: str, *formats: str) -> None:
    """Refuse a format that the command does not write."""
    if chosen not in formats:
        raise UsageError(f"no format {quoted(chosen)} here; choose from {choices(formats)}")


def screen(output: str | None) -> Screen:
    """Return what the place the answer goes to can show: a terminal's width and colour."""
    if output is not None or not sys.stdout.isatty():
        return Screen()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Screen(width=max(shutil.get_terminal_size().columns, 20), color=not plain)


def write(chunks: Iterable[str | bytes], output: str | None) -> None:
    """Write the chunks to a file, whole or not at all, or to stdout.

    Raises:
        UsageError: the file cannot be written; what stood there before is untouched.
    """
    if output is None:
        _to_stdout(chunks)
        return
    with new_file(output) as file:
        for chunk in chunks:
            file.write(chunk if isinstance(chunk, bytes) else _encoded(chunk))


@contextlib.contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and else is removed."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with _open_special(path) as file:  # a pipe or a device is written in place
            yield file
        return
    # Behind a link stands the file to replace; the link itself stays.
    target = os.path.realpath(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"cannot write {quoted(path)}: it is a folder; name a file")
    try:
        handle, temporary = tempfile.mkstemp(
            prefix=f".{os.path.basename(target)[:100]}.", dir=os.path.dirname(target)
        )
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise


def _open_special(path: str) -> BinaryIO:
    try:
        return open(path, "wb")
    except OSError as error:
        raise _unwritable(path, error) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _unwritable(path: str, error: Exception) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"cannot write {quoted(path)}: {printable(reason)}")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _to_stdout(chunks: Iterable[str | bytes]) -> None:
    stdout = sys.stdout.buffer
    for chunk in chunks:
        stdout.write(chunk if isinstance(chunk, bytes) else _encoded(chunk))
    stdout.flush()


def warn(messages: Iterable[str]) -> None:
    """Say each thing that surprises, once, on stderr."""
    for message in dict.fromkeys(messages):
        say(f"warning: {message}")


def say(line: str) -> None:
    """Write one line to stderr."""
    print(printable(line, 2000), file=sys.stderr)  # noqa: T201  # the one place that prints


def fail(error: ShardctlError | str) -> None:
    """Write the one line that every failure gets."""
    say(f"error: {' '.join(str(error).split())}")
