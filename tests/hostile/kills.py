"""Writers that a signal ends at any moment: the target is whole, and nothing is left beside it."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.children import start

_WRITERS: Sequence[Sequence[str]] = (
    ("simulate", "-d", "imagenet2012", "--take", "-1", "-f", "npy", "-o", "out"),
    ("simulate", "-d", "imagenet2012", "--take", "200000", "-f", "csv", "-o", "out"),
    ("plan", "train", "-d", "imagenet2012", "--hosts", "300", "-f", "json", "-o", "out"),
    ("resume", "-d", "imagenet2012", "--consumed", "500000", "--epochs", "20", "-o", "out"),
    ("snapshot", "train", "-d", "imagenet2012", "--shuffle-seed", "1", "-o", "out"),
)
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_OLD = b"what was there before\n"
_IN_PYTHON = f"{os.sep}shardctl{os.sep}"  # in the path of a line of a traceback
_DONE = re.compile(r"^(wrote out: .*|next: .*)\n?", re.MULTILINE)  # said once the target is whole


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """What a writer writes where nobody stops it, and how long it takes."""

    data: bytes
    seconds: float


@cache
def _whole(command: Sequence[str]) -> _Whole:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        assert _process(command, folder).wait(300) == 0
        return _Whole(data=Path(folder, "out").read_bytes(), seconds=time.monotonic() - began)


def killed(name: str) -> tuple[Sequence[str], list[str]]:
    """Return the command that a signal ended at some moment, and what was wrong after that."""
    rng = random.Random(f"kills {name}")
    command, sent, old = rng.choice(_WRITERS), rng.choice(_SIGNALS), rng.choice((_OLD, None))
    whole = _whole(command)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "out")
        if old is not None:
            target.write_bytes(old)
        process = _process(command, folder)
        time.sleep(rng.random() * whole.seconds * 1.1)
        process.send_signal(sent)
        _, said = process.communicate(timeout=300)
        found = target.read_bytes() if target.exists() else None
        heard = said.decode()
        if found == whole.data:
            heard = _DONE.sub("", heard)
        wrong = list(_wrong_end(process.returncode, heard, sent))
        if found not in ((whole.data,) if process.returncode == 0 else (old, whole.data)):
            wrong.append("the target is neither what it was nor what it is to be")
        if sent is signal.SIGKILL and _others(folder):
            # What a killed writer could not take away the next one does.
            assert _process(command, folder).wait(300) == 0
        wrong += [f"left {other!r} behind" for other in _others(folder)]
        return (sent.name, *command), wrong


def _others(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name != "out"]


def _wrong_end(code: int, said: str, sent: signal.Signals) -> Iterator[str]:
    """Yield what is wrong with an exit code and with what was said."""
    if sent is signal.SIGINT and said.endswith("KeyboardInterrupt\n") and _IN_PYTHON not in said:
        return  # the interpreter was still starting, and shardctl had no say
    # A signal that comes before Python handles it, or that nobody handles, ends the process.
    if code not in (0, -sent, 128 + sent):
        yield f"exit code {code}"
    if said:
        yield f"says {said.splitlines()[-1][:100]!r}"


def _process(command: Sequence[str], folder: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    return start(
        [sys.executable, "-m", "shardctl", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
