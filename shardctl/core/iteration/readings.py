"""Whether iterations hand out codes or numbers of readings; see `Iteration.readings_at`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COUNTED: ContextVar[bool] = ContextVar("counted", default=False)


def are_counted() -> bool:
    """Whether sources hand out zeros, and each repetition adds the readings before it."""
    return _COUNTED.get()


@contextmanager
def counted(*, on: bool = True) -> Iterator[None]:
    """Hand out numbers of readings in this block, or codes where it is not `on`."""
    before = _COUNTED.set(on)
    try:
        yield
    finally:
        _COUNTED.reset(before)
