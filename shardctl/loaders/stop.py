"""Where a loader stopped, and the calls of its library that lead there again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a loader stopped: after `consumed` examples, `in_epoch` of them of its epoch.

    epoch: from 0 in the pass. steps, steps_in_epoch: whole batches, None without batches.
    in_batch: examples of the next batch that were handed out.
    """

    consumed: int
    epoch: int
    in_epoch: int
    steps: int | None
    steps_in_epoch: int | None
    in_batch: int


@dataclass(frozen=True, kw_only=True)
class LoaderCall:
    """A call of the library on the way to what is left, with its arguments.

    set_epoch, iterations: which epoch comes first, the second by iterating so often before.
    skip, skip_first_batches, skip_in_batch: how many examples or batches are passed by.
    """

    call: str
    arguments: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.call}({', '.join(f'{name}={n}' for name, n in self.arguments.items())})"
