"""Bytes in memory as files near and far, which keep what was read of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

RECORDED = Path(__file__).parent / "records" / "recorded"


class MemorySource:
    """An open file without a disk; `ranges` are those that were asked for."""

    def __init__(self, data: bytes, *, local_path: str | None = None) -> None:
        self.num_bytes = len(data)
        self.local_path = local_path
        self.ranges: list[tuple[int, int]] = []
        self._data = data

    @property
    def num_bytes_read(self) -> int:
        """Return how many bytes were handed out."""
        return sum(stop - start for start, stop in self.ranges)

    def read(self, start: int, stop: int) -> bytes:
        assert 0 <= start <= stop <= self.num_bytes, "no request goes beyond a file"
        self.ranges.append((start, stop))
        return self._data[start:stop]

    def file(self) -> BinaryIO:
        return io.BytesIO(self._data)


def near(data: bytes) -> MemorySource:
    """Return a source that is read as files of a disk are."""
    return MemorySource(data, local_path="/a")


def far(data: bytes) -> MemorySource:
    """Return a source that is read as objects in a bucket are."""
    return MemorySource(data)
