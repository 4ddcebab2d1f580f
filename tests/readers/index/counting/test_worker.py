"""Messages between a process that counts and the one that asks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.counting.worker import (
    await_begin,
    packed_batch,
    receive,
    send,
    unpacked_answer,
)
from shardctl.readers.index.runner import FileToCount
from tests.record_files import framed


def test_messages_are_whole_or_none() -> None:
    pipe = io.BytesIO()
    send(pipe, {"a": 1})
    send(pipe, [2])
    data = pipe.getvalue()
    both = io.BytesIO(data)
    assert (receive(both), receive(both)) == ({"a": 1}, [2])
    for stop in range(len(data) - 1):
        cut = io.BytesIO(data[:stop])
        with pytest.raises(EOFError):
            [receive(cut) for _ in range(2)]


def test_a_process_counts_and_ends_with_its_input(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff"
    path.write_bytes(framed(b"x", b"y"))
    file = StoredFile(path=str(path), num_bytes=0)
    tasks = [
        FileToCount(index=index, file=file, file_format="tfrecord", listed=False)
        for index in (7, 8)
    ]
    worker = subprocess.Popen(
        [sys.executable, "-c", "from shardctl.readers.index.counting.worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    send(worker.stdin, packed_batch(tasks))
    await_begin(worker.stdout)
    answers = [unpacked_answer(receive(worker.stdout))]
    while not answers[-1].done:
        answers.append(unpacked_answer(receive(worker.stdout)))
    counted = [one for answer in answers for one in answer.counted]
    assert [(one.index, one.contents.num_records) for one in counted] == [(7, 2), (8, 2)]
    assert sum(answer.num_bytes for answer in answers) == 2 * 34
    assert all(answer.error is None for answer in answers)
    worker.stdin.close()
    assert worker.wait(10) == 0
    worker.stdout.close()
    os.unlink(path)
