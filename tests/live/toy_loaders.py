"""Loaders without a library, for a DataLoader that shuffles nothing: right, wrong, and broken."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.live.library import Library
from shardctl.loaders.loader_sequence import LoaderConfig

HERE = __name__


class InOrder(Library):
    """Each example once an epoch, in order, in batches that end with it."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        size = asked.batch or 1
        for _ in range(asked.epochs):
            for start in range(0, asked.num_examples, size):
                stop = min(start + size, asked.num_examples)
                if stop - start == size or not asked.drop_remainder:
                    yield np.arange(start, stop)


class Swapped(Library):
    """The examples 2 and 3 are swapped."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        order = np.arange(asked.num_examples)
        order[2:4] = order[2:4][::-1]
        yield order


class InOnes(Library):
    """Batches of one, whatever is asked."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        yield from np.arange(asked.num_examples).reshape(-1, 1)


class Endless(Library):
    """Begins anew, without end."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        while True:
            yield from InOrder(self.loader).batches(asked)


class Raises(Library):
    """Stops after three examples with an error of its own."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        yield np.arange(3)
        raise RuntimeError("\nno more\nof this")


class Refuses(Library):
    """Takes no settings at all."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        raise UsageError("the library refuses these settings")


class Dies(Library):
    """Its process is gone, without a word."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        print("noise of a library")
        yield np.arange(3)
        os._exit(7)


class WithWorker(Library):
    """Starts a process, says in a file which, and waits."""

    def batches(self, asked: LoaderConfig) -> Iterator[Int64s]:
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        path = Path(os.environ["WORKER_FILE"])
        path.with_suffix(".new").write_text(f"{os.getpid()} {worker.pid}")
        path.with_suffix(".new").replace(path)
        yield np.arange(5000)
        time.sleep(600)
