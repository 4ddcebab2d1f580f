"""Calls in several threads at once, which end with the program when it is interrupted.

The threads are daemons: those of `concurrent.futures` are waited for at the end of the program, so
that Ctrl-C would take as long as the slowest request.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def concurrently(
    function: Callable[[Item], Answer], items: Iterable[Item], *, at_once: int
) -> Iterator[Answer]:
    """Yield the answers in the order of the items; the first error ends it.

    No more than twice `at_once` items are taken ahead of the answer that is waited for, so items
    and answers may be without end.

    >>> list(concurrently(len, ["a", "bc"], at_once=2))
    [1, 2]
    """
    ahead: deque[_Call] = deque()
    threads = _Threads(function, at_once)
    try:
        for item in items:
            ahead.append(threads.call(item))
            while len(ahead) >= 2 * at_once or (ahead and ahead[0].done.is_set()):
                yield _waited_for(ahead.popleft())
        while ahead:
            yield _waited_for(ahead.popleft())
    finally:
        threads.end()


def as_answered(
    function: Callable[[Item], Answer], items: Iterable[Item], *, at_once: int, wait: float
) -> Iterator[Answer | None]:
    """Yield the answers as they come, and None whenever none came for `wait` seconds.

    The first error ends it. No more than twice `at_once` items are taken ahead.

    >>> sorted(answer for answer in as_answered(len, ["a", "bc"], at_once=2, wait=9) if answer)
    [1, 2]
    """
    answered: queue.SimpleQueue[_Call] = queue.SimpleQueue()
    threads = _Threads(function, at_once, answered.put)
    source, left = iter(items), 0
    try:
        while True:
            while left < 2 * at_once:
                try:
                    item = next(source)
                except StopIteration:
                    break
                threads.call(item)
                left += 1
            if not left:
                return
            try:
                call = answered.get(timeout=wait)
            except queue.Empty:
                yield None
                continue
            left -= 1
            yield call.result()
    finally:
        threads.end()


class _Call:
    """One call: what it is made with, and what came of it."""

    def __init__(self, item: Any) -> None:
        self.item, self.answer = item, None
        self.error: BaseException | None = None
        self.done = threading.Event()

    def run(self, function: Callable[[Any], Any]) -> None:
        try:
            self.answer = function(self.item)
        except BaseException as error:
            self.error = error
        self.done.set()

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


class _Threads:
    """Up to `at_once` threads that make calls of a function; they begin as calls are asked for."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        at_once: int,
        answered: Callable[[_Call], None] = lambda call: None,
    ) -> None:
        self._function, self._at_once, self._answered = function, at_once, answered
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._count, self._ended = 0, False

    def call(self, item: Any) -> _Call:
        call = _Call(item)
        self._waiting.put(call)
        if self._count < self._at_once:
            self._count += 1
            threading.Thread(target=self._work, name="shardctl request", daemon=True).start()
        return call

    def end(self) -> None:
        """Let the threads end with the call that they are at; nobody waits for them."""
        self._ended = True
        for _ in range(self._count):
            self._waiting.put(None)

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            if not self._ended:
                call.run(self._function)
                self._answered(call)


def _waited_for(call: _Call) -> Any:
    while not call.done.wait(1.0):  # in pieces: Windows hears of Ctrl-C between them only
        pass
    return call.result()
