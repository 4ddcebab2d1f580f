"""Which ranges are fetched for those that are asked for."""

from __future__ import annotations

import random

import pytest
from hypothesis import strategies as st

from shardctl.errors import DatasetError
from shardctl.files.stores.ranges import GAP, RemoteSource, merged
from shardctl.files.stores.store import StoredFile
from tests.cases import check_cases, few_or_many

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


def test_a_gap_that_costs_less_than_a_request_is_read_through() -> None:
    near = [(0, 10), (10 + GAP, 20 + GAP)]
    assert merged(near) == [(0, 20 + GAP)]
    assert merged([(0, 10), (11 + GAP, 20 + GAP)]) == [(0, 10), (11 + GAP, 20 + GAP)]
    assert merged([(5, 9), (0, 7), (8, 8), (9, 3)]) == [(0, 9)]


def test_what_is_merged_stays_small_enough_to_be_fetched_at_once() -> None:
    pieces = [(start, start + (1 << 20)) for start in range(0, 32 << 20, 1 << 20)]
    assert len(merged(pieces)) == 4


@few_or_many(15, 60)
def test_random_ranges_are_the_bytes_of_the_file(num_cases: int) -> None:
    def one(seed: int) -> None:
        choose = random.Random(seed)
        ranges = []
        for _ in range(choose.randrange(12)):
            start = choose.randrange(-5, len(DATA) + 5)
            ranges.append((start, start + choose.choice([-3, 0, 1, 16, 5000, 400_000])))
        fetched = Fetched(DATA)
        wanted = [DATA[max(start, 0) : max(stop, 0)] for start, stop in ranges]
        assert fetched.source.read_many(ranges) == wanted
        assert len(fetched.ranges) <= len(ranges)
        for (_, last), (first, _) in zip(merged(ranges), merged(ranges)[1:], strict=False):
            assert first >= last

    check_cases(st.integers(0, 1 << 32), one, num_cases)


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
