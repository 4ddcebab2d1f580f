"""Requests tried again where another attempt may help, with waits that grow, and an end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from shardctl.core.text import counted
from shardctl.errors import DatasetError
from shardctl.files.stores.transfer.limits import limits
from shardctl.files.stores.transfer.redaction import shown

# Answers after which the same request may succeed (gcsfs, botocore and urllib3 retry these too).
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 8.0  # seconds
_BRIEF_PATIENCE = 4.0

Answer = TypeVar("Answer")


class TransientError(Exception):
    """A request failed in a way that another attempt may not.

    brief: it is rarely over soon, as a refused connection, so it is tried for seconds only.
    progress: some bytes came, so the patience begins anew.
    """

    def __init__(
        self, reason: str, *, wait: float = 0.0, brief: bool = False, progress: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.wait, self.brief, self.progress = reason, wait, brief, progress


def attempted(request: Callable[[], Answer], *, path: str) -> Answer:
    """Return the answer of a request, tried again for as long as `limits().patience` says.

    Raises:
        DatasetError: none of the attempts succeeded.
    """
    patience = limits().patience
    begun, attempts = time.monotonic(), 0
    while True:
        try:
            return request()
        except TransientError as error:
            now = time.monotonic()
            if error.progress:
                begun, attempts = now, 0
            attempts += 1
            wait = min(_FIRST_WAIT * 2 ** (attempts - 1), _LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311
            allowed = min(patience, _BRIEF_PATIENCE) if error.brief else patience
            left = begun + allowed - now
            if wait > left:
                tried = f"after {counted(attempts, 'attempt')} in {now - begun:.0f} s"
                message = f"cannot read {shown(path)}: {error.reason} ({tried})"
                raise DatasetError(message) from None
            wait = max(wait, min(error.wait, left))  # what the server asks for, but once
        time.sleep(wait)
