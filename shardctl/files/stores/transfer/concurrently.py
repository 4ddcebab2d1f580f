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


def concurrently(
    function: Callable[[Item], Answer], items: Iterable[Item], *, at_once: int
) -> Iterator[Answer]:
    """Yield the answers in the order of the items; the first error ends it.

    No more than twice `at_once` items are taken ahead of the answer that is waited for, so items
    and answers may be without end.

    >>> list(concurrently(len, ["a", "bc"], at_once=2))
    [1, 2]
    """
    waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
    ahead: deque[_Call] = deque()
    threads = 0
    stopped = threading.Event()

    def work() -> None:
        while (call := waiting.get()) is not None:
            if not stopped.is_set():
                call.run(function)

    try:
        for item in items:
            ahead.append(_Call(item))
            waiting.put(ahead[-1])
            if threads < at_once:
                threads += 1
                threading.Thread(target=work, name="shardctl request", daemon=True).start()
            while len(ahead) >= 2 * at_once or (ahead and ahead[0].done.is_set()):
                yield _answer(ahead.popleft())
        while ahead:
            yield _answer(ahead.popleft())
    finally:
        stopped.set()
        for _ in range(threads):
            waiting.put(None)


def _answer(call: _Call) -> Any:
    while not call.done.wait(1.0):  # in pieces: Windows hears of Ctrl-C between them only
        pass
    if call.error is not None:
        raise call.error
    return call.answer
