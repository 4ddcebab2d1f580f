"""Files counted on this machine: by processes of their own, by threads, or by the one that asks.

To start a process takes a tenth of a second, so that a little work is done by the caller. Files far
away wait for the network, not for a processor: threads ask for many at once.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from shardctl.base.phrase import refused
from shardctl.base.text import quoted
from shardctl.errors import DatasetError
from shardctl.metadata.index.counting.child import begin, connected, receive, send, start_child
from shardctl.metadata.index.runner import CountedFile, FileToCount, count_one
from shardctl.records.contents import Told, untold
from shardctl.stores.concurrently import as_answered
from shardctl.stores.paths import is_remote

_ALONE = 0.2  # seconds of work for which no other processes are started
_BATCH_FILES, _BATCH_BYTES = 256, 1 << 25
_MOST_JOBS = 1000
_THREADS = 32  # of files far away
_WAIT = 0.1  # seconds between two reports, and in which an interrupt is noticed, on every system


class LocalRunner:
    """Counts files by up to `jobs` processes; see `Runner`.

    `told` is called in the thread that asks for answers, with the bytes read since the last call.
    """

    def __init__(self, *, jobs: int | None = None, told: Told = untold) -> None:
        cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        self._jobs = jobs or len(cpus) or os.cpu_count() or 1
        self._told = told

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done."""
        source = iter(files)
        begin = time.monotonic()
        for task in source:
            if is_remote(task.file.path):
                alone = ([one] for one in chain([task], source))
                yield from self._at_once(_count_here, alone, _THREADS)
            elif self._pays(task, time.monotonic() - begin) and (more := next(source, None)):
                children = _Children()
                try:
                    batches = _batches(chain([task, more], source))
                    yield from self._at_once(children.count, batches, self._jobs)
                finally:
                    children.end()
            else:
                yield count_one(task, self._told)

    def _pays(self, task: FileToCount, seconds: float) -> bool:
        """Return whether processes pay: where the caller has worked for a while, or is about to."""
        can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
        long = seconds > _ALONE or task.file.num_bytes >= _BATCH_BYTES
        return self._jobs > 1 and can_start and long

    def _at_once(
        self,
        count: Callable[[Told, list[FileToCount]], list[CountedFile]],
        batches: Iterator[list[FileToCount]],
        at_once: int,
    ) -> Iterator[CountedFile]:
        """Yield what several threads count, and tell what they read."""
        read: queue.SimpleQueue[int] = queue.SimpleQueue()
        ended = False

        def note(num_bytes: int) -> None:
            if ended:  # nobody waits for an answer
                raise EOFError
            read.put(num_bytes)

        try:
            for answer in as_answered(partial(count, note), batches, at_once=at_once, wait=_WAIT):
                self._told(sum(read.get() for _ in range(read.qsize())))
                yield from answer or ()
        finally:
            ended = True


def checked_jobs(jobs: int | None, runner: object = None) -> int | None:
    """Return a number of processes, or refuse it.

    Raises:
        UsageError: fewer than one, or more than a machine takes; or another runner counts.
    """
    if jobs is not None and runner is not None:
        text = "{jobs!} with {runner}: it knows itself how many workers count"
        raise refused(text, jobs=jobs)
    if jobs is not None and jobs < 1:
        raise refused("{jobs!}: at least 1 process has to count", jobs=jobs)
    if jobs is not None and jobs > _MOST_JOBS:
        raise refused("{jobs!}: at most {} processes are started", _MOST_JOBS, jobs=jobs)
    return jobs


def _count_here(told: Told, batch: list[FileToCount]) -> list[CountedFile]:
    return [count_one(task, told) for task in batch]


class _Children:
    """Processes, one for each thread that asks; each counts one batch at a time."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._free: list[subprocess.Popen[bytes]] = []
        self._starting = threading.Lock()
        self._ended = False

    def count(self, told: Told, batch: list[FileToCount]) -> list[CountedFile]:
        """Return what the files of a batch hold.

        Raises:
            DatasetError: a process was ended from outside.
        """
        child = self._free.pop() if self._free else None
        is_new = child is None
        child = child or self._started()
        if child is None:
            return _count_here(told, batch)
        try:
            if is_new:
                begin(child)
            send(child.stdin, batch)
            while isinstance(answer := receive(child.stdout), int):
                told(answer)
        except (EOFError, OSError) as error:
            raise _lost(child, batch) from error
        if isinstance(answer, Exception):
            raise answer
        self._free.append(child)
        found: list[CountedFile] = answer
        return found

    def _started(self) -> subprocess.Popen[bytes] | None:
        """Return a new process; None where there is no Python, or a limit of processes."""
        new_group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        with self._starting:
            try:
                child = None if self._ended else start_child(__name__, creationflags=new_group)
            except OSError:
                return None
            self._all += [child] if child else []
        return child

    def end(self) -> None:
        """End all at once."""
        self._ended = True
        with self._starting:
            for child in self._all:
                child.kill()
                child.wait()


def _lost(child: subprocess.Popen[bytes], batch: list[FileToCount]) -> DatasetError:
    """Return the error of a process that ended by itself."""
    code = child.wait()
    how = f"ended with {code}"
    if code < 0:
        memory = ", as a system does that runs out of memory" if code == -signal.SIGKILL else ""
        how = f"was ended by {signal.Signals(-code).name}{memory}"
    what = quoted(batch[0].file.path, 200)
    return DatasetError(f"the process that counted {what} {how}; fewer --jobs take less memory")


def _batches(files: Iterable[FileToCount]) -> Iterator[list[FileToCount]]:
    """Yield small files many at a time, and a large one alone."""
    batch: list[FileToCount] = []
    num_bytes = 0
    for task in files:
        if task.file.num_bytes >= _BATCH_BYTES:
            yield [task]
            continue
        batch.append(task)
        num_bytes += task.file.num_bytes
        if len(batch) >= _BATCH_FILES or num_bytes >= _BATCH_BYTES:
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch


def main() -> None:
    """Count the batches that come to this process, until nothing more comes."""
    batches, target = connected(lambda: os._exit(0))
    num_read, reported = 0, time.monotonic()

    def told(num_bytes: int) -> None:
        nonlocal num_read, reported
        num_read += num_bytes
        if time.monotonic() - reported > _WAIT:
            send(target, num_read)
            num_read, reported = 0, time.monotonic()

    try:
        while True:
            counted = _count_here(told, batches.get())
            send(target, num_read)
            send(target, counted)
            num_read = 0
    except BrokenPipeError:
        pass
    except MemoryError:
        os._exit(1)
    except Exception as error:
        send(target, error)
    os._exit(0)
