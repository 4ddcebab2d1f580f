"""A process of its own in which a real loader runs: nothing of it stays behind.

A library starts threads and worker processes, and forks of a process with threads hang or die. So
it is imported by a fresh Python, which leads a session: whatever ends it ends its workers, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import IO, TypeAlias

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import printable
from shardctl.errors import DatasetError, ShardctlError
from shardctl.loaders.loader import Loader, library_of
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.metadata.index.workers import begin, connected, receive, send, start_child

_AT_ONCE = 4096  # examples that are compared, and sent, together

# The sizes of some batches, and the indices of all of them in a row.
Pieces: TypeAlias = Generator[tuple[list[int], Int64s]]


class GaveUpError(Exception):
    """A library raised something in the midst of an order; the text is what it said."""


def in_pieces(batches: Iterator[Int64s]) -> Pieces:
    """Yield batches, many small ones at once; they are closed where this is.

    >>> [sizes for sizes, _ in in_pieces(iter([np.arange(2), np.arange(1)]))]
    [[2, 1]]

    Raises:
        GaveUpError: the library raised an error, after what came before that.
        ShardctlError: what a loader of ours refuses.
    """
    kept: list[Int64s] = []
    held = 0  # examples

    def piece() -> tuple[list[int], Int64s]:
        made = [len(batch) for batch in kept], np.concatenate(kept)
        kept.clear()
        return made

    try:
        for batch in batches:
            kept.append(np.asarray(batch, np.int64).reshape(-1))
            held += len(kept[-1])
            if held >= _AT_ONCE:
                held = 0
                yield piece()
    # Anything that a library may raise; what was yielded before is still compared.
    except Exception as error:
        if kept:  # what came before it is compared first
            yield piece()
        if isinstance(error, ShardctlError):
            raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise GaveUpError(printable(lines[0] if lines else type(error).__name__, 300)) from error
    # The generator of the library ends its worker processes when it is closed.
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()
    if kept:
        yield piece()


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

    def pieces(self, config: LoaderConfig) -> Pieces:
        """Yield what the loader yields, batches together.

        Raises:
            GaveUpError: the library raised an error, or its process died.
            ShardctlError: the library is not installed, or refuses these settings.
        """
        # `whole` says that the order was read to its end, or an error took its place. Only then is
        # the process fit for another order.
        process, whole = self._process or self._started(), False
        try:
            send(process.stdin, (self._loader, config))
            # A message is None (the end), an error, or (sizes, bytes of int64).
            while not whole:
                message = receive(process.stdout)
                whole = message is None or isinstance(message, Exception)
                if isinstance(message, Exception):
                    raise message
                if message is not None:
                    yield message[0], np.frombuffer(message[1], np.int64)
        # The pipe broke: the process has died.
        except (EOFError, OSError) as error:
            raise GaveUpError(f"its process {_how_it_ended(process)}") from error
        finally:
            # Left early: the process may still be sending, so it is ended.
            if not whole:
                self.end()

    def end(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        # The process leads a session, so its process group holds the workers of the library too.
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
        """Return what libraries are set to: no card, no network, files in a folder of ours."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="shardctl-", ignore_cleanup_errors=True
            )
        # Caches and temporary files go to a folder that is deleted.
        caches = dict.fromkeys(("TMPDIR", "HF_DATASETS_CACHE"), self._folder.name)
        return {**caches, "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1"}

    def _started(self) -> subprocess.Popen[bytes]:
        shown = bool(os.environ.get("SHARDCTL_TRACEBACK"))
        self._process = process = start_child(
            __name__,
            # The library's own output would mix with ours; a variable shows it.
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
    # A negative code is the signal that ended it.
    code = process.wait()
    return f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def main() -> None:
    """Run the loaders that are asked for on stdin, until nothing more comes."""
    requests, target = connected(_end_all)
    try:
        while True:
            _answer(target, *requests.get())
    except OSError:  # its reader is gone
        _end_all()


def _answer(target: IO[bytes], loader: Loader, config: LoaderConfig) -> None:
    try:
        for sizes, indices in in_pieces(library_of(loader).batches(config)):
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
