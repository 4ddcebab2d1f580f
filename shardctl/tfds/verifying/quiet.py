"""TensorFlow without its noise: what it logs and warns about stays out of a command's output."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Keep what TensorFlow says to itself, on the CPU alone, while the block runs.

    TensorFlow writes to the file descriptor 2 from C++, in part before it knows of any log level,
    so that descriptor leads to /dev/null meanwhile; `sys.stderr` writes where it did. Python's
    logging and warnings are silent too. With SHARDCTL_TRACEBACK set everything is shown.

    A graphics card that a training job uses is not touched: if TensorFlow is not loaded yet, it
    will not see any.
    """
    if "tensorflow" not in sys.modules:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if os.environ.get("SHARDCTL_TRACEBACK"):
        yield
        return
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _without_descriptor_2():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


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
