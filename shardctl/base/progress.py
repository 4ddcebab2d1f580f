"""How far a long piece of work is, who is shown it, and when it is too long to begin.

Every loop whose length the input decides is announced as a `Progress`: that refuses, before it
begins, what would take more than a day, and reports to whoever watches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from shardctl.base.text import counted
from shardctl.errors import UsageError

Watch = Callable[[str, int, int], None]  # what is counted, how much of it is done, and of how much

MAX_SECONDS = 86_400  # work that is estimated to take longer is refused
IDS_PER_SECOND = 100_000_000  # ids of an order made and looked at, on one core of a laptop

_Piece = TypeVar("_Piece")
# Who is shown the work that is done here, None where nobody is.
WATCHING: ContextVar[Watch | None] = ContextVar("watching", default=None)

_LESS = "take fewer --epochs, or a part as train[:1%]"


@contextlib.contextmanager
def watched_by(watch: Watch | None) -> Iterator[None]:
    """Report the work in this block, unless it has a watch of its own; None changes nothing."""
    before = WATCHING.set(watch or WATCHING.get())
    try:
        yield
    finally:
        WATCHING.reset(before)


class Progress:
    """How much of a piece of work is done; what is done twice counts once.

    Raises:
        UsageError: at so many `per_second` it would take more than a day; `instead` is the way out.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        watch: Watch | None = None,
        per_second: int = IDS_PER_SECOND,
        instead: str = _LESS,
    ) -> None:
        if total > MAX_SECONDS * per_second:
            raise UsageError(
                f"{total:,} {what} would take {_duration(total // per_second)}, and more than a "
                f"day is refused; {instead}"
            )
        self._watch = WATCHING.get() if watch is None else watch
        self._what = what
        self._total = total
        self._done = 0

    def advance(self, count: int) -> None:
        """Note that so much more is done.

        >>> Progress("files", 2, watch=lambda *report: print(report)).advance(3)
        ('files', 2, 2)
        """
        self._done = min(self._done + count, self._total)
        if self._watch is not None:
            self._watch(self._what, self._done, self._total)

    def over(self, pieces: Iterable[_Piece], size: Callable[[_Piece], int]) -> Iterator[_Piece]:
        """Yield the pieces of the work, each of which is done when the next is asked for."""
        for piece in pieces:
            yield piece
            self.advance(size(piece))


def _duration(seconds: int) -> str:
    """Return a time of more than a day in words, from a day to what nobody waits for.

    >>> _duration(200_000), _duration(10**9)
    ('about 2 days', 'about 31 years')
    """
    days = max(seconds // 86_400, 1)
    return f"about {counted(days, 'day') if days < 730 else f'{days // 365:,} years'}"
