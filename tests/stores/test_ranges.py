"""Which ranges are fetched for those that are asked for."""

from __future__ import annotations

import random

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.ranges import RemoteSource
from shardctl.stores.store import StoredFile

DATA = random.Random(7).randbytes(3_000_000)


class Fetched:
    """A source over bytes in memory that notes what was fetched."""

    def __init__(self, data: bytes) -> None:
        self.data, self.ranges = data, list[tuple[int, int]]()
        file = StoredFile(path="gs://b/a", num_bytes=len(data))
        self.source = RemoteSource(file, self.fetch)

    def fetch(self, start: int, stop: int) -> bytes:
        assert 0 <= start < stop <= len(self.data)
        self.ranges.append((start, stop))
        return self.data[start:stop]


def test_a_random_walk_through_the_file_is_as_on_a_disk() -> None:
    import io

    choose = random.Random(3)
    fetched, expected = Fetched(DATA), io.BytesIO(DATA)
    seekable = fetched.source.file()
    for _ in range(300):
        if choose.random() < 0.5:
            whence = choose.randrange(3)
            offset = choose.randrange(0, len(DATA)) * (-1 if whence == 2 else 1) // (1 + whence % 2)
            if whence == 1:
                offset = choose.randrange(0, 100)
            assert seekable.seek(offset, whence) == expected.seek(offset, whence)
        size = choose.choice([0, 1, 8, 4096, 70_000, 300_000])
        assert seekable.read(size) == expected.read(size)
        assert seekable.tell() == expected.tell()


def test_a_footer_is_one_request() -> None:
    fetched = Fetched(DATA)
    seekable = fetched.source.file()
    size = seekable.seek(0, 2)
    seekable.seek(size - 8)
    seekable.read(8)
    seekable.seek(size - 65_536)
    seekable.read(65_536)
    assert fetched.ranges == [(len(DATA) - (256 << 10), len(DATA))]


def test_reading_on_and_on_takes_blocks() -> None:
    fetched = Fetched(DATA)
    seekable = fetched.source.file()
    read = b"".join(iter(lambda: seekable.read(1000), b""))
    assert read == DATA
    assert len(fetched.ranges) <= len(DATA) // (128 << 10) + 1


def test_a_place_that_gives_less_is_never_taken_for_the_end() -> None:
    source = RemoteSource(StoredFile(path="gs://b/a", num_bytes=100), lambda start, stop: b"x")
    with pytest.raises(DatasetError, match="cannot read 'gs://b/a': 1 bytes came, not 60"):
        source.read(20, 80)
