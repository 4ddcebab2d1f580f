"""A process that counts files: batches of them come on its stdin, answers go to its stdout.

Messages are pickles, each behind its length. It ends when its stdin does, in the midst of a file
too, so that none is left behind by a parent that is killed.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import IO, Any

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.runner import CountedFile, FileToCount, count_one
from shardctl.readers.records.contents import FileContents

_REPORTS = 0.1  # seconds between two answers of one batch
_LENGTH = struct.Struct("<Q")
# What comes before it is nobody's answer: a sitecustomize.py or a .pth file prints.
BEGIN = b"\0shardctl counts\0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was counted and read since the last answer.

    done: whether a batch ends with it. error: what ends all.
    """

    counted: tuple[CountedFile, ...] = ()
    num_bytes: int = 0
    done: bool = False
    error: Exception | None = None


# Plain tuples: a dataclass takes ten times as long to pickle, and there may be a million.
_Packed = tuple[Any, ...]
_FILE, _TASK = ("path", "num_bytes", "version"), ("index", "file_format", "checksums", "listed")
_CONTENTS = tuple(field.name for field in fields(FileContents))
_of_file, _of_task, _of_contents = attrgetter(*_FILE), attrgetter(*_TASK), attrgetter(*_CONTENTS)


def packed_batch(batch: Sequence[FileToCount]) -> _Packed:
    """Return a batch as a message."""
    return tuple((_of_file(task.file), _of_task(task)) for task in batch)


def _unpacked_batch(message: _Packed) -> Iterator[FileToCount]:
    for file, task in message:
        stored = StoredFile(**dict(zip(_FILE, file, strict=True)))
        yield FileToCount(file=stored, **dict(zip(_TASK, task, strict=True)))


def unpacked_answer(message: _Packed) -> Answer:
    """Return the answer that a message is."""
    counted, num_bytes, done, error = message
    found = (
        CountedFile(index=index, contents=FileContents(**dict(zip(_CONTENTS, values, strict=True))))
        for index, values in counted
    )
    return Answer(counted=tuple(found), num_bytes=num_bytes, done=done, error=error)


def send(file: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """Read one message.

    Raises:
        EOFError: the other side has ended.
    """
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)  # noqa: S301  # from our own process, by a pipe


def await_begin(file: IO[bytes]) -> None:
    """Read up to where the answers of a process begin.

    Raises:
        EOFError: the process has ended.
    """
    seen = b""
    while not seen.endswith(BEGIN):
        more = file.read(1)
        if not more:
            raise EOFError
        seen = (seen + more)[-len(BEGIN) :]


class _Answers:
    """The way back: what was counted goes there now and then, with what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._num_bytes = 0
        self._counted: list[_Packed] = []
        self._sent = time.monotonic()

    def told(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        if time.monotonic() - self._sent > _REPORTS:
            self.send()

    def add(self, counted: CountedFile) -> None:
        self._counted.append((counted.index, _of_contents(counted.contents)))
        self.told(0)

    def send(self, *, done: bool = False) -> None:
        message = (self._counted, self._num_bytes, done, None)
        self._counted, self._num_bytes, self._sent = [], 0, time.monotonic()
        send(self._file, message)


def main() -> None:
    """Count what comes until nothing more comes."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints must not get among the answers.
    os.dup2(2, 1)
    target.write(BEGIN)
    target.flush()
    batches: queue.SimpleQueue[_Packed] = queue.SimpleQueue()
    threading.Thread(target=_read_batches, args=(source, batches), daemon=True).start()
    answers = _Answers(target)
    try:
        while True:
            for task in _unpacked_batch(batches.get()):
                answers.add(count_one(task, answers.told))
            answers.send(done=True)
    except BrokenPipeError:
        pass
    except Exception as error:
        send(target, ((), 0, False, error))
    os._exit(0)


def _read_batches(source: IO[bytes], batches: queue.SimpleQueue[_Packed]) -> None:
    """Read ahead, so that the end of the input is seen while files are counted."""
    try:
        while True:
            batches.put(receive(source))
    except EOFError:
        os._exit(0)
