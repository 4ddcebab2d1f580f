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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from shardctl.readers.index.runner import CountedFile, FileToCount

_REPORTS = 0.1  # seconds between two answers of one batch
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was counted and read since the last answer.

    done: whether a batch ends with it. error: what ends all, an error of ours where it is one.
    """

    counted: tuple[CountedFile, ...] = ()
    num_bytes: int = 0
    done: bool = False
    error: Exception | None = None


def send(file: BinaryIO, message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def receive(file: BinaryIO) -> Any:
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
    return pickle.loads(data)


class _Answers:
    """The way back: what was counted goes there now and then, with what was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._num_bytes = 0
        self._counted: list[CountedFile] = []
        self._sent = time.monotonic()

    def told(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        if time.monotonic() - self._sent > _REPORTS:
            self.send()

    def add(self, counted: CountedFile) -> None:
        self._counted.append(counted)
        self.told(0)

    def send(self, *, done: bool = False) -> None:
        answer = Answer(counted=tuple(self._counted), num_bytes=self._num_bytes, done=done)
        self._counted.clear()
        self._num_bytes, self._sent = 0, time.monotonic()
        send(self._file, answer)


def main() -> None:
    """Count what comes until nothing more comes."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints must not get among the answers.
    os.dup2(2, 1)
    batches: queue.SimpleQueue[Sequence[FileToCount]] = queue.SimpleQueue()
    threading.Thread(target=_read_batches, args=(source, batches), daemon=True).start()
    answers = _Answers(target)
    try:
        from shardctl.readers.records.read_file import count_file

        while True:
            for task in batches.get():
                contents = count_file(
                    task.file, task.file_format, checksums=task.checksums, told=answers.told
                )
                answers.add(CountedFile(index=task.index, contents=contents))
            answers.send(done=True)
    except BrokenPipeError:
        pass
    except Exception as error:
        send(target, Answer(error=error))
    os._exit(0)


def _read_batches(source: BinaryIO, batches: queue.SimpleQueue[Sequence[FileToCount]]) -> None:
    """Read ahead, so that the end of the input is seen while files are counted."""
    try:
        while True:
            batches.put(receive(source))
    except EOFError:
        os._exit(0)
