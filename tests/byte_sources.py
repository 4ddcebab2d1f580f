"""Bytes and folders in memory as files near and far, which keep what was read of them."""

from __future__ import annotations

import itertools
from pathlib import Path

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


def near(data: bytes) -> MemorySource:
    """Return a source that is read as files of a disk are."""
    return MemorySource(data, local_path="/a")


def far(data: bytes) -> MemorySource:
    """Return a source that is read as objects in a bucket are."""
    return MemorySource(data)


_numbers = itertools.count()


def in_memory(folder: Path, *, user: str = "") -> str:
    """Copy a folder to a bucket of its own in the memory of this process; return its URL.

    `user` is what stands before an `@` in that, as a password does elsewhere.
    """
    import fsspec

    url = f"memory://{user}bucket-{next(_numbers)}/{folder.name}"
    memory = fsspec.filesystem("memory")
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            memory.pipe_file(f"{url}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return url
