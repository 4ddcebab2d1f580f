"""A remote file as ranges of its bytes: near ones fetched as one, far ones at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

from shardctl.errors import DatasetError
from shardctl.files.stores.concurrently import concurrently
from shardctl.files.stores.failures import limits, shown

if TYPE_CHECKING:
    from shardctl.files.stores.store import StoredFile

# A request takes some 20 ms and its price; at 10 MB/s that many bytes are read meanwhile.
GAP = 128 << 10
# What is merged stays small enough that several such pieces are fetched at once.
_LARGEST_MERGED = 8 << 20
# A file that is read here and there is read in blocks; its end, where footers are, in one.
_BLOCK, _TAIL = 128 << 10, 256 << 10

Fetch = Callable[[int, int], bytes]


def merged(ranges: Sequence[tuple[int, int]], gap: int = GAP) -> list[tuple[int, int]]:
    """Return the ranges to fetch for `ranges`: sorted, apart by more than `gap`.

    >>> merged([(500, 510), (0, 10), (20, 30)], gap=10)
    [(0, 30), (500, 510)]
    """
    found: list[tuple[int, int]] = []
    for start, stop in sorted(pair for pair in ranges if pair[0] < pair[1]):
        if found and start - found[-1][1] <= gap:
            first, last = found[-1]
            if start < last or stop - first <= _LARGEST_MERGED:
                found[-1] = (first, max(last, stop))
                continue
        found.append((start, stop))
    return found


class RemoteSource:
    """An open remote file.

    Args:
        file: as it was listed.
        fetch: returns the bytes [start, stop) of it, or raises; asked for none beyond its end.
    """

    def __init__(self, file: StoredFile, fetch: Fetch) -> None:
        self._stored, self._fetch = file, fetch
        self.num_bytes = file.num_bytes
        self.local_path: str | None = None

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of the file, up to its end."""
        start, stop = max(start, 0), min(stop, self.num_bytes)
        if start >= stop:
            return b""
        data = self._fetch(start, stop)
        if len(data) != stop - start:
            name = shown(self._stored.path)
            raise DatasetError(f"cannot read {name}: {len(data)} bytes came, not {stop - start}")
        return data

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several ranges."""
        inside = [(max(start, 0), min(stop, self.num_bytes)) for start, stop in ranges]
        wanted = merged(inside)
        at_once = limits().requests
        if len(wanted) <= 1:
            pieces = [self.read(*pair) for pair in wanted]
        else:
            pieces = list(concurrently(lambda pair: self.read(*pair), wanted, at_once=at_once))
        return _cut(inside, wanted, pieces)

    def file(self) -> BinaryIO:
        """Return it as a seekable file that keeps the blocks it read last."""
        return cast(BinaryIO, _RangeFile(self))


def _cut(
    ranges: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]], pieces: Sequence[bytes]
) -> list[bytes]:
    order = sorted(range(len(ranges)), key=lambda index: ranges[index])
    found, place = [b""] * len(ranges), 0
    for index in order:
        start, stop = ranges[index]
        if start >= stop:
            continue
        while wanted[place][1] < stop:
            place += 1
        first = wanted[place][0]
        found[index] = pieces[place][start - first : stop - first]
    return found


class _RangeFile(io.RawIOBase):
    """A seekable file over a remote source; each read is answered in full, as from a disk."""

    def __init__(self, source: RemoteSource) -> None:
        super().__init__()
        self._source, self._at = source, 0
        self._blocks: list[tuple[int, bytes]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.num_bytes}
        if begin[whence] + offset < 0:
            raise ValueError("negative seek position")
        self._at = begin[whence] + offset
        return self._at

    def readall(self) -> bytes:
        return self._bytes(self._source.num_bytes)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._bytes(self._at + len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _bytes(self, stop: int) -> bytes:
        start, stop = self._at, min(stop, self._source.num_bytes)
        if start >= stop:
            return b""
        held = next((held for held in self._blocks if _holds(held, start, stop)), None)
        if held is None:
            first, last = start, max(stop, min(start + _BLOCK, self._source.num_bytes))
            if self._source.num_bytes - start <= _TAIL:
                first, last = max(self._source.num_bytes - _TAIL, 0), self._source.num_bytes
            held = (first, self._source.read(first, last))
            # Two are kept: the end of the file, and where it is read.
            self._blocks = [*self._blocks[-1:], held]
        self._at = stop
        first, data = held
        return data[start - first : stop - first]


def _holds(held: tuple[int, bytes], start: int, stop: int) -> bool:
    return held[0] <= start and stop <= held[0] + len(held[1])
