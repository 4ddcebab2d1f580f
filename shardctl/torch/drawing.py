"""Who draws from a sampler, and who asks for its state: loaders do not say so, their calls do.

A DataLoader with worker processes draws batches before it hands them out
(`_MultiProcessingDataLoaderIter._try_put_index` of torch/utils/data/dataloader.py, 2.13); a
StatefulDataLoader too, which keeps the state of the sampler behind each of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

_FURTHEST = 12  # calls between a sampler and its loader; three in PyTorch 2.13


def draws_ahead() -> bool:
    """Return whether the caller is iterated by a loader of PyTorch that has worker processes."""
    for frame in _callers():
        if _library(frame) in ("torch", "torchdata"):
            workers = getattr(frame.f_locals.get("self"), "_num_workers", 0)
            if isinstance(workers, int) and workers > 0:
                return True
    return False


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
