"""Parts of a report, or why one of them is not shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from shardctl.errors import ShardctlError

Answer = TypeVar("Answer")
Earlier = TypeVar("Earlier")


@dataclass(frozen=True, kw_only=True)
class NotShown:
    """A part that cannot be had, and why, in one line."""

    reason: str


Shown: TypeAlias = Answer | NotShown


def shown(ask: Callable[[], Answer]) -> Answer | NotShown:
    """Return an answer, or why there is none.

    >>> from shardctl.errors import UsageError
    >>> def refused():
    ...     raise UsageError("no such split")
    >>> shown(refused), shown(lambda: 3)
    (NotShown(reason='no such split'), 3)
    """
    try:
        return ask()
    except ShardctlError as error:
        return NotShown(reason=str(error))


def shown_of(earlier: Earlier | NotShown, ask: Callable[[Earlier], Answer]) -> Answer | NotShown:
    """Return what is made of another part; where that is not there, why it is not.

    >>> shown_of(NotShown(reason="no such split"), lambda quality: quality.score)
    NotShown(reason='no such split')
    """
    if isinstance(earlier, NotShown):
        return earlier
    return shown(lambda: ask(earlier))
