"""Programs that tests start and send signals to."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def start(arguments: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program that signals end, even if this process ignores them (`nohup`, `trap ""`).

    A program inherits what its parent ignores, and Python turns SIGINT into KeyboardInterrupt only
    if it is not ignored at start. What the parent handles is reset to the default in the child.
    """
    before = {number: signal.signal(number, _handle) for number in ENDING}
    try:
        return subprocess.Popen(arguments, **options)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def first_line(process: subprocess.Popen[bytes], *, seconds: float = 300) -> bytes:
    """Wait for the first line on stderr; kill a program that says none in time."""
    assert process.stderr is not None
    limit = threading.Timer(seconds, process.kill)
    limit.start()
    try:
        return process.stderr.readline()
    finally:
        limit.cancel()


def _handle(number: int, frame: object) -> None:
    raise KeyboardInterrupt
