"""Pipes, stdin and stderr: nothing waits without end, and libraries do not print.

A FIFO in a folder blocks whoever opens it until another process does; a device may have no end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import BinaryIO

from shardctl.base.text import quoted
from shardctl.errors import DatasetError


def open_stream(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file, a pipe or, as `-`, stdin to be read once from its start.

    What a process that runs writes to a pipe of this one (a process substitution) is waited for.

    Raises:
        DatasetError: a device without an end, or a FIFO, whose writer may never come.
        OSError: it cannot be opened.
        ValueError: a NUL in the path.
    """
    if os.fspath(path) == "-":
        return _stdin()
    shown = quoted(path, 200)
    mode = os.stat(path).st_mode
    # Below /proc or /dev/fd the pipe belongs to a process substitution, whose writer is there.
    waits = stat.S_ISFIFO(mode) and os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))
    is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.path.samefile(path, os.devnull)
    if not (waits or is_file):
        how = "give a file, <(command), or - for stdin"
        raise DatasetError(f"{shown} is a named pipe, a device or a socket; {how}")
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


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise DatasetError("stdin is closed; name a file")
    # closefd=False: stdin itself stays open for what is read from it later.
    return open(sys.stdin.fileno(), "rb", closefd=False)


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
def redirected(descriptor: int, to: int) -> Iterator[int | None]:
    """Let a descriptor lead where another does, and yield a copy that leads where it did.

    That is None where it is closed, so that nothing can come out of it.
    """
    try:
        kept = os.dup(descriptor)
    except OSError:
        yield None
        return
    try:
        os.dup2(to, descriptor)
        yield kept
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)


@contextlib.contextmanager
def _without_descriptor_2() -> Iterator[None]:
    own = sys.stderr
    with open(os.devnull, "w") as nowhere, redirected(2, nowhere.fileno()) as kept:
        try:
            # Python's own stderr goes to the kept copy, so that our messages still arrive.
            if kept is not None and _is_descriptor_2(own):
                sys.stderr = open(kept, "w", buffering=1, errors=own.errors, closefd=False)  # noqa: SIM115  # closed below
            yield
        finally:
            if sys.stderr is not own:
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.close()
                sys.stderr = own


def _is_descriptor_2(stream: object) -> bool:
    try:
        return stream.fileno() == 2  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, OSError, ValueError):
        return False
