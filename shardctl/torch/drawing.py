"""Who draws from a sampler, and who asks for its state: loaders do not say so, their calls do.

A DataLoader with worker processes draws batches before it hands them out
(`_MultiProcessingDataLoaderIter._try_put_index` of torch/utils/data/dataloader.py, 2.13); a
StatefulDataLoader too, which keeps the state of the sampler behind each of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError

_FURTHEST = 12  # calls between a sampler and its loader; three in PyTorch 2.13


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How a loader draws: its worker processes, and the batches that it makes, None of none."""

    workers: int = 0
    batch: int | None = None
    drop_last: bool = False

    def check(self, settings: ReadSettings, num_examples: int) -> None:
        """Refuse batches that are not those of the settings.

        Raises:
            UsageError: of another size, or without the last one where the settings keep it.
        """
        if self.batch is None:
            return
        if self.batch != (settings.batch or 1):
            raise UsageError(
                phrase(
                    "the DataLoader makes batches of {}, and the settings of {}; give it "
                    "batch_size=sampler.settings.batch, or the settings {batch=}",
                    self.batch,
                    settings.batch or 1,
                    batch=self.batch,
                )
            )
        if self.drop_last and num_examples % self.batch:
            raise UsageError(
                phrase(
                    "the DataLoader drops the last batch (drop_last), and the settings keep it; "
                    "give the settings {drop_remainder=True}"
                )
            )


def drawing() -> Drawing:
    """Return how the loader of PyTorch draws by which the caller is iterated."""
    workers, batch, drop_last = 0, None, False
    for frame in _callers():
        if _library(frame) not in ("torch", "torchdata"):
            continue
        caller = frame.f_locals.get("self")
        workers = max(workers, _number(caller, "_num_workers") or 0)
        if batch is None and (batch := _number(caller, "batch_size")) is not None:
            drop_last = bool(getattr(caller, "drop_last", False))
    return Drawing(workers=workers, batch=batch, drop_last=drop_last)


def asked_by_torchdata() -> bool:
    """Return whether torchdata is among those who called the caller."""
    return any(_library(frame) == "torchdata" for frame in _callers())


def _callers() -> Iterator[FrameType]:
    frame = sys._getframe(2).f_back  # past who asks, and its caller
    for _ in range(_FURTHEST):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _library(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _number(caller: object, name: str) -> int | None:
    found = getattr(caller, name, None)
    return found if isinstance(found, int) else None
