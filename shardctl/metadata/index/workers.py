"""Counts files on this machine: in this process, in other processes, or in threads.

To start a process takes a tenth of a second, so a little work is done by the caller. Remote files
wait for the network, not for a processor: threads ask for many at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any, Protocol, runtime_checkable

from shardctl.base.arguments import made_kind
from shardctl.base.phrase import refused
from shardctl.base.text import quoted
from shardctl.errors import DatasetError
from shardctl.records.contents import FileContents, Report, no_report
from shardctl.stores.concurrently import as_answered
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import is_remote

_ALONE = 0.2  # seconds of work for which no other processes are started
_BATCH_FILES, _BATCH_BYTES = 256, 1 << 25
_MOST_JOBS = 1000
_THREADS = 32  # of files far away
_WAIT = 0.1  # seconds between two reports, and in which an interrupt is noticed, on every system


class LocalRunner:
    """Counts files by up to `jobs` processes; see `Runner`.

    `report` is called in the thread that asks for answers, with the bytes read since the last call.
    """

    def __init__(self, *, jobs: int | None = None, report: Report = no_report) -> None:
        # The processors that this process may use, which may be fewer than the machine has.
        cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        self._jobs = jobs or len(cpus) or os.cpu_count() or 1
        self._report_bytes = report

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done."""
        source = iter(files)
        begin = time.monotonic()
        for task in source:
            # One remote file is taken to mean that the rest are remote, too.
            if is_remote(task.file.path):
                alone = ([one] for one in chain([task], source))
                yield from self._at_once(_count_here, alone, _THREADS)
            # One by one until that has taken long; then the rest goes to other processes.
            elif self._pays(task, time.monotonic() - begin) and (more := next(source, None)):
                children = _Children()
                try:
                    batches = _batches(chain([task, more], source))
                    yield from self._at_once(children.count, batches, self._jobs)
                finally:
                    children.end()
            else:
                yield count_one(task, self._report_bytes)

    def _pays(self, task: FileToCount, seconds: float) -> bool:
        """Return whether processes pay: where the caller has worked for a while, or is about to."""
        can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
        long = seconds > _ALONE or task.file.num_bytes >= _BATCH_BYTES
        return self._jobs > 1 and can_start and long

    def _at_once(
        self,
        count: Callable[[Report, list[FileToCount]], list[CountedFile]],
        batches: Iterator[list[FileToCount]],
        at_once: int,
    ) -> Iterator[CountedFile]:
        """Yield what several threads count, and report what they read."""
        read: queue.SimpleQueue[int] = queue.SimpleQueue()
        ended = False

        def note(num_bytes: int) -> None:
            if ended:  # no answer is expected any more
                raise EOFError
            read.put(num_bytes)

        try:
            for answer in as_answered(partial(count, note), batches, at_once=at_once, wait=_WAIT):
                self._report_bytes(sum(read.get() for _ in range(read.qsize())))
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
    if jobs is not None and not 1 <= jobs <= _MOST_JOBS:
        raise refused("{jobs!}: 1 to {} processes can count", _MOST_JOBS, jobs=jobs)
    return jobs


def _count_here(report: Report, batch: list[FileToCount]) -> list[CountedFile]:
    return [count_one(task, report) for task in batch]


class _Children:
    """Processes, one for each thread that asks; each counts one batch at a time."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._free: list[subprocess.Popen[bytes]] = []
        self._starting = threading.Lock()
        self._ended = False

    def count(self, report: Report, batch: list[FileToCount]) -> list[CountedFile]:
        """Return what the files of a batch hold.

        Raises:
            DatasetError: a process was ended from outside.
        """
        child = None
        with contextlib.suppress(IndexError):  # threads share the list; another may take the last
            child = self._free.pop()
        is_new = child is None
        child = child or self._started()
        if child is None:
            return _count_here(report, batch)
        try:
            if is_new:
                begin(child)
            send(child.stdin, batch)
            # Whole numbers are progress in bytes; the answer is a list or an error.
            while isinstance(answer := receive(child.stdout), int):
                report(answer)
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
    how = f"ended with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
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

    def report(num_bytes: int) -> None:
        nonlocal num_read, reported
        num_read += num_bytes
        if time.monotonic() - reported > _WAIT:
            send(target, num_read)
            num_read, reported = 0, time.monotonic()

    try:
        while True:
            counted = _count_here(report, batches.get())
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


# A Python process of our own: pickles go to its stdin and come from its stdout.
#
# It is started with `python -c`, not forked: a fork of a process with threads, as one that has
# loaded TensorFlow, may hang; and not as multiprocessing spawns one, which runs the caller's
# script again where it has no `if __name__ == "__main__"`.

# Where modules are found comes as a first line: a thousand folders of Bazel are no argument.
# It is read without a buffer, which would take of the messages behind it.
_PROGRAM = """
import sys
path = bytes.fromhex(open(0, "rb", 0, closefd=False).readline().decode())
sys.path[:] = path.decode("utf-8", "surrogatepass").split(chr(0))
from {module} import main
main()
"""
_HERE = str(Path(__file__).parents[3])  # the folder that shardctl is in
# What comes before it is no answer: a sitecustomize.py or a .pth file may print.
_BEGIN = b"\0shardctl begins\0"


def start_child(module: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that runs `main` of a module after `begin` is called.

    It never sees Ctrl-C, which is for the one that ends it.

    Raises:
        OSError: it cannot be started.
    """
    blocked = None
    if hasattr(signal, "pthread_sigmask"):  # which the process inherits
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(  # noqa: S603  # this very Python, a fixed program
            [sys.executable, "-P", "-c", _PROGRAM.format(module=module)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **options,
        )
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def begin(child: subprocess.Popen[bytes]) -> None:
    """Let a process begin, and wait until it has; it finds modules where this one does.

    Raises:
        EOFError, OSError: it ended before.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    # What is no text in the path Python ignores too. This package is found where "" or "src" in it
    # means a folder that was left since.
    folders: list[object] = [*sys.path, _HERE]
    path = "\0".join(folder for folder in folders if isinstance(folder, str))
    child.stdin.write(f"{path.encode('utf-8', 'surrogatepass').hex()}\n".encode())
    child.stdin.flush()
    seen = b""
    while not seen.endswith(_BEGIN):
        more = child.stdout.read(1)
        if not more:
            raise EOFError
        # Byte by byte: anything read beyond the mark would be missing from the first message.
        seen = (seen + more)[-len(_BEGIN) :]


def connected(at_end: Callable[[], None]) -> tuple[queue.SimpleQueue[Any], IO[bytes]]:
    """Return what comes to this process and where its answers go; its `main` begins with it.

    at_end: is called where nothing more comes, while a message is worked at too, so that no process
        is left behind by a parent that is killed.
    """
    # The pipes move to descriptors of their own, so that no library can read from or print to them.
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a library prints must not get among the answers
    try:
        target.write(_BEGIN)
        target.flush()
    except BrokenPipeError:  # a signal ended the parent while this process loaded
        os._exit(0)
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read_ahead() -> None:
        try:
            while True:
                messages.put(receive(source))
        except EOFError:
            pass
        finally:  # also where a message cannot be read: who waits for an answer is told
            at_end()

    threading.Thread(target=read_ahead, daemon=True).start()
    return messages, target


def send(file: IO[bytes] | None, message: object) -> None:
    """Write one message, behind its length."""
    assert file is not None
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def receive(file: IO[bytes] | None) -> Any:
    """Read one message.

    Raises:
        EOFError: the other side has ended.
    """
    assert file is not None
    head = file.read(8)
    data = file.read(int.from_bytes(head, "little"))
    if len(head) < 8 or len(data) < int.from_bytes(head, "little"):
        raise EOFError
    return pickle.loads(data)  # noqa: S301  # from our own process, by a pipe


# Where files are counted: processes of this machine, or a Beam pipeline.


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToCount:
    """A file, its format as `FORMATS` names it, and whether its contents are checked too.

    digest: whether the SHA-256 of all its bytes is wanted.
    index: its position among all files that are to be counted; answers come in any order.
    listed: whether `file` is as a listing showed it; else whatever is at its path is counted.
    """

    index: int
    file: StoredFile
    file_format: str
    checksums: bool = False
    listed: bool = True
    digest: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedFile:
    """What a file holds; both parts can be pickled."""

    index: int
    contents: FileContents


def count_one(task: FileToCount, report: Report = no_report) -> CountedFile:
    """Return what one file holds; the one way in which every runner counts.

    Raises:
        MissingDependencyError: a package that the format or the place needs is not installed.
    """
    from shardctl.records.read_file import count_file

    contents = count_file(
        task.file,
        task.file_format,
        checksums=task.checksums,
        digest=task.digest,
        listed=task.listed,
        report=report,
    )
    return CountedFile(index=task.index, contents=contents)


@runtime_checkable
class Runner(Protocol):
    """Counts many files at once, in bounded memory."""

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done.

        Files are asked for as room for them comes, in the thread that asks for answers. An end of
        the asking, or an interrupt, ends the work.
        """


def _made(value: Any) -> Runner | None:
    if isinstance(value, Sequence):  # a text or a list, which have a method `count` as well
        return None
    return value if isinstance(value, Runner) else None


RunnerLike = Annotated[
    Runner, made_kind(_made, needed="a runner, as beam_runner()", several="runners")
]
