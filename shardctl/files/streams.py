"""Pipes, stdin and stderr: never waited for without end, and silent where libraries speak.

A FIFO in a folder blocks whoever opens it until another process does; a device may have no end.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import BinaryIO

from shardctl.base.text import quoted
from shardctl.errors import DatasetError

MAX_WAIT = 10.0  # seconds for another process to open the other end of a FIFO


def open_stream(path: str | os.PathLike[str], *, max_wait: float = MAX_WAIT) -> BinaryIO:
    """Open a file, a pipe or, as `-`, stdin to be read once from its start.

    What a process that runs writes to a pipe is waited for, as `cat` does; a process substitution
    is such a pipe. A FIFO that nobody opens for writing is not.

    Raises:
        DatasetError: a device without an end, or a FIFO without a writer.
        OSError: it cannot be opened.
        ValueError: a NUL in the path.
    """
    if os.fspath(path) == "-":
        return _stdin()
    shown = quoted(path, 200)
    mode = os.stat(path).st_mode
    if stat.S_ISFIFO(mode):
        return _fifo(path, shown, max_wait)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not _is_null(path):
        raise DatasetError(f"{shown} is a device or a socket; a file, a pipe or - (stdin) is read")
    return open(path, "rb")


def read_stdin(*, max_num_bytes: int) -> bytes:
    """Return all that stdin has.

    Raises:
        DatasetError: it is closed, or has more bytes.
    """
    with _stdin() as stdin:
        data = stdin.read(max_num_bytes + 1)
    if len(data) > max_num_bytes:
        raise DatasetError(f"stdin has more than {max_num_bytes} bytes, the most read as text")
    return data


def _is_null(path: str | os.PathLike[str]) -> bool:
    return os.path.samefile(path, os.devnull)


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise DatasetError("stdin is closed; name a file")
    return open(sys.stdin.fileno(), "rb", closefd=False)


def _fifo(path: str | os.PathLike[str], shown: str, max_wait: float) -> BinaryIO:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # A pipe of this process (/dev/fd/63) has had its writer, who may have left by now.
        if not os.path.realpath(path).startswith(("/proc/", "/dev/fd/")):
            ready = select.poll()
            ready.register(handle, select.POLLIN)
            if not ready.poll(max_wait * 1000):
                raise DatasetError(
                    f"{shown}: nobody wrote to this pipe within {max_wait:g} s; "
                    "give the command as <(command), or pipe it to -"
                )
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def open_fifo_to_write(path: str, *, max_wait: float = MAX_WAIT) -> BinaryIO:
    """Open a FIFO that another process reads, or will in a moment.

    Raises:
        OSError: nobody opens it for reading.
    """
    limit = time.monotonic() + max_wait
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > limit:
                text = f"nobody reads this pipe; waited {max_wait:g} s"
                raise OSError(errno.ENXIO, text) from None
            time.sleep(0.02)
            continue
        os.set_blocking(handle, True)
        return os.fdopen(handle, "wb")


@contextlib.contextmanager
def silent_libraries() -> Iterator[None]:
    """Keep what libraries say to themselves while the block runs.

    Some write to the file descriptor 2 from C++, or from processes of their own, so that descriptor
    leads to /dev/null meanwhile; `sys.stderr` writes where it did. Python's logging and warnings
    are silent too, and so are threads that an error ends; handlers that a library gives to logging
    are taken away in the end. With
    SHARDCTL_TRACEBACK set everything is shown.
    """
    if os.environ.get("SHARDCTL_TRACEBACK"):
        yield
        return
    disabled, handlers = logging.root.manager.disable, [*logging.root.handlers]
    excepthook = threading.excepthook
    logging.disable(logging.CRITICAL)
    threading.excepthook = _say_nothing
    try:
        with warnings.catch_warnings(), _without_descriptor_2():
            warnings.simplefilter("ignore")
            yield
    finally:
        threading.excepthook = excepthook
        logging.root.handlers[:] = handlers
        logging.disable(disabled)


def _say_nothing(error: threading.ExceptHookArgs) -> None:
    """Take no notice of an error that ended a thread."""


@contextlib.contextmanager
def _without_descriptor_2() -> Iterator[None]:
    try:
        kept = os.dup(2)
    except OSError:  # it is closed, so nothing can come out of it
        yield
        return
    own = sys.stderr
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        if _is_descriptor_2(own):
            sys.stderr = open(kept, "w", buffering=1, errors=own.errors, closefd=False)  # noqa: SIM115  # closed below
        yield
    finally:
        if sys.stderr is not own:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.close()
            sys.stderr = own
        os.dup2(kept, 2)
        os.close(kept)


def _is_descriptor_2(stream: object) -> bool:
    try:
        return stream.fileno() == 2  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, OSError, ValueError):
        return False
