"""Files counted on this machine: by processes of their own, by threads, or by the one that asks.

Processes are started with `python -c`, not forked: a fork of a process with threads, as one that
has loaded TensorFlow, may hang; and not as multiprocessing spawns them, which runs the caller's
script again where it has no `if __name__ == "__main__"`. To start one takes a tenth of a second, so
that a little work is done by the caller. Files far away wait for the network, not for a processor:
threads ask for many at once.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TypeAlias

from shardctl.core.phrase import phrase
from shardctl.core.text import quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.concurrently import as_answered
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.counting.worker import (
    Answer,
    await_begin,
    packed_batch,
    receive,
    send,
    unpacked_answer,
)
from shardctl.readers.index.runner import CountedFile, FileToCount, count_one
from shardctl.readers.records.contents import Told, untold

_ALONE = 0.2  # seconds of work for which no other processes are started
_BATCH_FILES, _BATCH_BYTES = 256, 1 << 25
_MOST_JOBS = 1000
_THREADS = 32  # of files far away
_WAIT = 0.1  # seconds in which an interrupt is noticed, on every system

# Where modules are found comes as a first line: a thousand folders of Bazel are no argument.
# It is read without a buffer, which would take of the messages behind it.
_PROGRAM = """
import sys
path = bytes.fromhex(open(0, "rb", 0, closefd=False).readline().decode())
sys.path[:] = path.decode("utf-8", "surrogatepass").split(chr(0))
from shardctl.readers.index.counting.worker import main
main()
"""
_HERE = str(Path(__file__).parents[4])  # the folder that shardctl is in


class LocalRunner:
    """Counts files by up to `jobs` processes; see `Runner`.

    `told` is called in the thread that asks for answers, with the bytes read since the last call.
    """

    def __init__(self, *, jobs: int | None = None, told: Told = untold) -> None:
        self._jobs = num_cpus() if jobs is None else jobs
        self._told = told

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done."""
        source = iter(files)
        begin = time.monotonic()
        for task in source:
            if is_remote(task.file.path):
                yield from _by_threads(chain([task], source), _THREADS, self._told)
            elif self._pays(task, time.monotonic() - begin) and (more := next(source, None)):
                yield from _by_processes(chain([task, more], source), self._jobs, self._told)
            else:
                yield count_one(task, self._told)

    def _pays(self, task: FileToCount, seconds: float) -> bool:
        """Return whether processes pay: where the caller has worked for a while, or is about to."""
        can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
        long = seconds > _ALONE or task.file.num_bytes >= _BATCH_BYTES
        return self._jobs > 1 and can_start and long


def checked_jobs(jobs: int | None, runner: object = None) -> int | None:
    """Return a number of processes, or refuse it.

    Raises:
        UsageError: fewer than one, or more than a machine takes; or another runner counts.
    """
    if jobs is not None and runner is not None:
        raise UsageError(
            phrase("{jobs!} with {runner}: it knows itself how many workers count", jobs=jobs)
        )
    if jobs is not None and jobs < 1:
        raise UsageError(phrase("{jobs!}: at least 1 process has to count", jobs=jobs))
    if jobs is not None and jobs > _MOST_JOBS:
        raise UsageError(phrase("{jobs!}: at most {} processes are started", _MOST_JOBS, jobs=jobs))
    return jobs


def num_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def _by_threads(files: Iterable[FileToCount], count: int, told: Told) -> Iterator[CountedFile]:
    read, ended, lock = 0, False, threading.Lock()

    def note(num_bytes: int) -> None:
        nonlocal read
        if ended:
            raise _EndedError
        with lock:
            read += num_bytes

    def report() -> None:
        nonlocal read
        with lock:
            num_bytes, read = read, 0
        told(num_bytes)

    count_file = partial(count_one, told=note)
    try:
        for answer in as_answered(count_file, files, at_once=count, wait=_WAIT):
            report()
            if answer is not None:
                yield answer
    finally:
        ended = True


class _EndedError(Exception):
    """The counting is to end; nobody waits for an answer."""


_Queue: TypeAlias = "queue.SimpleQueue[tuple[_Worker, Answer | None]]"


class _Worker:
    """A process, and the batches that it has and has not answered yet."""

    def __init__(self, answers: _Queue) -> None:
        self.batches: deque[dict[int, FileToCount]] = deque()
        with signals_blocked():
            self.process = subprocess.Popen(  # noqa: S603  # this very Python, a fixed program
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        self._reader = threading.Thread(target=self._receive, args=(answers,), daemon=True)
        self._reader.start()
        with self._sending() as pipe:
            pipe.write(module_path())

    def _receive(self, answers: _Queue) -> None:
        assert self.process.stdout is not None
        try:
            await_begin(self.process.stdout)
            while True:
                answers.put((self, unpacked_answer(receive(self.process.stdout))))
        except (EOFError, OSError, ValueError):
            answers.put((self, None))

    def give(self, batch: list[FileToCount]) -> None:
        self.batches.append({task.index: task for task in batch})
        with self._sending() as pipe:
            send(pipe, packed_batch(batch))

    @contextmanager
    def _sending(self) -> Iterator[IO[bytes]]:
        assert self.process.stdin is not None
        with suppress(OSError):  # a process that is gone is noticed where its answers are read
            yield self.process.stdin
            self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def lost(self) -> DatasetError:
        """Return the error of a process that ended by itself."""
        code = self.process.wait()
        if code >= 0:
            return self.failed(f"ended with {code}")
        memory = ", as a system does that runs out of memory" if code == -signal.SIGKILL else ""
        return self.failed(f"was ended by {signal.Signals(-code).name}{memory}")

    def failed(self, how: str) -> DatasetError:
        """Return the error of a process that failed with the file that it had in hand."""
        left = [task for batch in self.batches for task in batch.values()]
        what = quoted(left[0].file.path, 200) if left else "files"
        return DatasetError(
            phrase("the process that counted {} {}; fewer {jobs} take less memory", what, how)
        )


def module_path() -> bytes:
    """Return the line that says where modules are found; what is no text there Python ignores too.

    This package is found where "" or "src" in `sys.path` means a folder that was left since.
    """
    folders: list[object] = [*sys.path, _HERE]
    path = "\0".join(folder for folder in folders if isinstance(folder, str))
    return f"{path.encode('utf-8', 'surrogatepass').hex()}\n".encode()


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Let a process that starts here never see Ctrl-C, which is for the one that ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _by_processes(files: Iterable[FileToCount], jobs: int, told: Told) -> Iterator[CountedFile]:
    answers: _Queue = queue.SimpleQueue()
    batches = _batches(files)
    workers: list[_Worker] = []
    try:
        # Each process gets its first batch before one gets a second.
        for _ in range(jobs):
            if (batch := next(batches, None)) is None:
                break
            try:
                workers.append(_Worker(answers))
            except OSError:  # no Python there, or a limit of processes: those that are do it
                batches = chain([batch], batches)
                break
            workers[-1].give(batch)
        if not workers:
            yield from (count_one(task, told) for task in chain.from_iterable(batches))
        for worker in workers:
            if (batch := next(batches, None)) is not None:
                worker.give(batch)
        while any(worker.batches for worker in workers):
            yield from _answered(answers, batches, told)
    finally:
        for worker in workers:
            worker.end()


def _answered(
    answers: _Queue, batches: Iterator[list[FileToCount]], told: Told
) -> Iterator[CountedFile]:
    """Yield what one answer holds, none where none comes for a moment."""
    try:
        worker, answer = answers.get(timeout=_WAIT)
    except queue.Empty:
        told(0)
        return
    if answer is None:
        raise worker.lost()
    if isinstance(answer.error, MemoryError):
        raise worker.failed("ran out of memory")
    if answer.error is not None:
        raise answer.error
    told(answer.num_bytes)
    for counted in answer.counted:
        del worker.batches[0][counted.index]
    yield from answer.counted
    if answer.done:
        worker.batches.popleft()
        if (batch := next(batches, None)) is not None:
            worker.give(batch)


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
