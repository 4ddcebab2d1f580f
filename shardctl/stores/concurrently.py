"""Calls in several threads at once, which end with the program when it is interrupted.

The threads are daemons: those of `concurrent.futures` are waited for at the end of the program, so
that Ctrl-C would take as long as the slowest request.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def concurrently(
    function: Callable[[Item], Answer], items: Iterable[Item], *, at_once: int
) -> Iterator[Answer]:
    """Yield the answers in the order of the items; the first error in that order ends it.

    >>> list(concurrently(len, ["a", "bc"], at_once=2))
    [1, 2]
    """

    def numbered(item: tuple[int, Item]) -> tuple[int, Answer | None, BaseException | None]:
        try:
            return item[0], function(item[1]), None
        except BaseException as error:
            return item[0], None, error

    # Answers that came before their turn, by the number of their item.
    held: dict[int, tuple[Any, BaseException | None]] = {}
    number = 0
    # In pieces of a second: Windows hears of Ctrl-C between them only.
    for found in as_answered(numbered, enumerate(items), at_once=at_once, wait=1.0):
        if found is not None:
            held[found[0]] = found[1:]
        while number in held:
            answer, error = held.pop(number)
            if error is not None:
                raise error
            yield answer
            number += 1


def as_answered(
    function: Callable[[Item], Answer], items: Iterable[Item], *, at_once: int, wait: float
) -> Iterator[Answer | None]:
    """Yield the answers as they come, and None whenever none came for `wait` seconds.

    The first error ends it. No more than twice `at_once` items are taken ahead.

    >>> sorted(answer for answer in as_answered(len, ["a", "bc"], at_once=2, wait=9) if answer)
    [1, 2]
    """
    waiting: queue.SimpleQueue[list[Item]] = queue.SimpleQueue()
    answered: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    ended = False

    def work() -> None:
        # An item comes in a list, so that the empty list can end the thread and None can be an
        # item.
        while (item := waiting.get()) and not ended:
            try:
                answered.put((function(*item), None))
            except BaseException as error:
                answered.put((None, error))

    source, num_left, num_threads = iter(items), 0, 0
    try:
        while True:
            # Twice as many as threads, so that none waits while this one is busy with an answer.
            for item in itertools.islice(source, 2 * at_once - num_left):
                waiting.put([item])
                num_left += 1
                if num_threads < at_once:
                    threading.Thread(target=work, name="shardctl request", daemon=True).start()
                    num_threads += 1
            if not num_left:
                return
            try:
                answer, error = answered.get(timeout=wait)
            except queue.Empty:
                yield None
                continue
            num_left -= 1
            if error is not None:
                raise error
            yield answer
    finally:  # each thread ends with its current call, and is not waited for
        ended = True
        for _ in range(num_threads):
            waiting.put([])
