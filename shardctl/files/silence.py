"""What libraries say while they work: kept to themselves, on every way that they have to stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator


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
