"""How long a remote place is waited for, and how many requests run at once."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from functools import cache

from shardctl.errors import UsageError

_LONGEST_WAIT = 86_400.0
_MOST_REQUESTS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits in force in this process.

    timeout: seconds without a byte after which a request is given up and tried again.
    patience: seconds after which a place that answers nothing but errors is given up.
    requests: how many requests run at once, in all threads together.
    """

    timeout: float = 20.0
    patience: float = 40.0
    requests: int = 16

    @property
    def connect_timeout(self) -> float:
        """Seconds to connect: a server that is there takes milliseconds."""
        return min(self.timeout, 10.0)

    def seconds_for(self, num_bytes: int) -> float:
        """Return how long one request may take: its time-out, and 20 kB/s from then on."""
        return self.timeout + num_bytes / 20_000


def limits() -> Limits:
    """Return the limits, as SHARDCTL_REMOTE_TIMEOUT, .._PATIENCE and .._REQUESTS say.

    Raises:
        UsageError: one of them is no number, or not positive.
    """
    usual = Limits()
    return Limits(
        timeout=_number("SHARDCTL_REMOTE_TIMEOUT", usual.timeout, _LONGEST_WAIT),
        patience=_number("SHARDCTL_REMOTE_PATIENCE", usual.patience, _LONGEST_WAIT),
        requests=int(_number("SHARDCTL_REMOTE_REQUESTS", usual.requests, _MOST_REQUESTS, least=1)),
    )


def slots() -> threading.BoundedSemaphore:
    """Return what keeps the requests of all threads of this process below the limit."""
    return _slots(os.getpid(), limits().requests)


@cache
def _slots(process: int, count: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(count)


def _number(name: str, usual: float, most: float, least: float = 0.01) -> float:
    text = os.environ.get(name, "").strip()
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise UsageError(f"{name} must be a number from {least:g} to {most:g}; it is {text[:40]!r}")
    return number
