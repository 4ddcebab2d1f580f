"""A process of its own in which a real loader runs: nothing of it stays behind.

A library starts threads and worker processes, and forks of a process with threads hang or die. So
it is imported by a fresh Python, which leads a session: whatever ends it ends its workers, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import DatasetError, ShardctlError
from shardctl.live.compare import GaveUpError, Pieces, in_pieces
from shardctl.live.real_data import RowFiles
from shardctl.loaders.library import Source, library_of
from shardctl.loaders.loader import Loader
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.metadata.index.workers import begin, connected, receive, send, start_child


class LoaderProcess:
    """Runs a loader, one order after the other; the context ends it.

    `loader` is its entry in the table. The process is started when it is first needed, and anew
    where an order is left before its end.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> LoaderProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        if self._folder is not None:
            self._folder.cleanup()

    def pieces(self, asked: LoaderConfig, examples: Source | RowFiles) -> Pieces:
        """Yield what the loader hands out, batches together.

        Raises:
            GaveUpError: the library raised an error, or its process died.
            ShardctlError: the library is not installed, or refuses these settings.
        """
        process = self._process or self._started()
        whole = False
        try:
            send(process.stdin, (self._loader, asked, examples))
            while True:
                message = receive(process.stdout)
                if message is None:
                    whole = True
                    return
                if isinstance(message, Exception):
                    whole = True
                    raise message
                sizes, indices = message
                yield sizes, np.frombuffer(indices, np.int64)
        except (EOFError, OSError) as error:
            raise GaveUpError(f"its process {_how_it_ended(process)}") from error
        finally:
            if not whole:
                self.end()

    def end(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _environment(self) -> dict[str, str]:
        """Return what libraries are told: no card, no network, files in a folder of ours."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="shardctl-", ignore_cleanup_errors=True
            )
        folder = self._folder.name
        caches = dict.fromkeys(("TMPDIR", "HF_DATASETS_CACHE"), folder)
        return {**caches, "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1"}

    def _started(self) -> subprocess.Popen[bytes]:
        shown = bool(os.environ.get("SHARDCTL_TRACEBACK"))
        self._process = process = start_child(
            __name__,
            stderr=None if shown else subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | self._environment(),
        )
        try:
            begin(process)
        except (EOFError, OSError) as error:
            how = _how_it_ended(process)
            raise DatasetError(f"the process that runs the loader {how} before it began") from error
        return process


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    return f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def main() -> None:
    """Run the loaders that are asked for on stdin, until nothing more comes."""
    asked, target = connected(_end_all)
    try:
        while True:
            _answer(target, *asked.get())
    except OSError:  # nobody reads any more
        _end_all()


def _answer(
    target: IO[bytes], loader: Loader, asked: LoaderConfig, examples: Source | RowFiles
) -> None:
    live = library_of(loader)

    def batches() -> Iterator[Int64s]:
        if isinstance(examples, RowFiles):
            yield from examples.batches(asked, live)
        else:
            yield from live.batches(asked, examples)

    try:
        for sizes, indices in in_pieces(batches()):
            send(target, (sizes, indices.tobytes()))
    except (ShardctlError, GaveUpError) as error:
        send(target, error)
        return
    send(target, None)


def _end_all() -> None:
    """End this process and the workers that a library has started in it."""
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)
