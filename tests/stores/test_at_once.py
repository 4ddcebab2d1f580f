"""Calls at once, and the ranges of a file that are fetched."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time

import pytest

from shardctl.stores.concurrently import as_answered, concurrently
from shardctl.stores.store import RemoteSource, StoredFile, seekable
from tests.children import start


def test_items_without_end_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []
    items = (taken.append(number) or number for number in itertools.count())  # type: ignore[func-returns-value]
    found = concurrently(lambda number: number, items, at_once=3)
    assert [next(found) for _ in range(10)] == list(range(10))
    found.close()  # type: ignore[attr-defined]
    assert len(taken) <= 10 + 2 * 3


def test_answers_come_in_the_order_of_the_items_and_no_more_run_at_once_than_is_said() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def counted(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02 if number % 5 == 0 else 0.002)
        with lock:
            running -= 1
        return number * number

    assert list(concurrently(counted, range(50), at_once=4)) == [n * n for n in range(50)]
    assert most == 4


def test_the_first_error_ends_it() -> None:
    called: list[int] = []

    def fails(number: int) -> int:
        called.append(number)
        if number == 2:
            raise ValueError("two")
        return number

    found = concurrently(fails, range(1000), at_once=2)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        list(found)
    assert len(called) < 100


_INTERRUPTED = """
import os, signal, threading, time
from shardctl.stores.concurrently import as_answered, concurrently
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
list(concurrently(time.sleep, [60] * 8, at_once=4))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_does_not_wait_for_requests() -> None:
    begun = time.monotonic()
    command = [sys.executable, "-c", _INTERRUPTED]
    with start(command, stderr=subprocess.PIPE) as process:
        _, said = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in said
    assert time.monotonic() - begun < 5


def test_answers_come_as_they_are_there_and_none_while_there_is_none() -> None:
    free = threading.Event()

    def slow_zero(number: int) -> int:
        if number == 0:
            free.wait(10)
        return number

    found = []
    for answer in as_answered(slow_zero, range(20), at_once=3, wait=0.01):
        found.append(answer)
        if answer is None:
            free.set()
    numbers = [answer for answer in found if answer is not None]
    assert sorted(numbers) == list(range(20))
    assert numbers[0] != 0
    assert None in found


DATA = random.Random(7).randbytes(3_000_000)


class Fetched:
    """A source over bytes in memory that notes what was fetched."""

    def __init__(self, data: bytes) -> None:
        self.data, self.ranges = data, list[tuple[int, int]]()
        file = StoredFile(path="gs://b/a", num_bytes=len(data))
        self.source = RemoteSource(file, self.fetch)

    def fetch(self, start: int, stop: int) -> bytes:
        assert 0 <= start < stop <= len(self.data)
        self.ranges.append((start, stop))
        return self.data[start:stop]


def test_a_random_walk_through_the_file_is_as_on_a_disk() -> None:
    import io

    choose = random.Random(3)
    fetched, expected = Fetched(DATA), io.BytesIO(DATA)
    file = seekable(fetched.source)
    for _ in range(300):
        if choose.random() < 0.5:
            whence = choose.randrange(3)
            offset = choose.randrange(0, len(DATA)) * (-1 if whence == 2 else 1) // (1 + whence % 2)
            if whence == 1:
                offset = choose.randrange(0, 100)
            assert file.seek(offset, whence) == expected.seek(offset, whence)
        size = choose.choice([0, 1, 8, 4096, 70_000, 300_000])
        assert file.read(size) == expected.read(size)
        assert file.tell() == expected.tell()


def test_a_footer_is_one_request() -> None:
    fetched = Fetched(DATA)
    file = seekable(fetched.source)
    size = file.seek(0, 2)
    file.seek(size - 65_536)  # as pyarrow does
    file.read(65_536)
    assert fetched.ranges == [(size - 65_536, size)]


def test_reading_on_and_on_takes_blocks() -> None:
    fetched = Fetched(DATA)
    file = seekable(fetched.source)
    read = b"".join(iter(lambda: file.read(1000), b""))
    assert read == DATA
    assert len(fetched.ranges) <= len(DATA) // (128 << 10) + 1
