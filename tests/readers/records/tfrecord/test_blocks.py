"""Which bytes of a file are asked for, near and far."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from itertools import pairwise

import pytest

from shardctl.files.stores.stores import LocalSource
from shardctl.readers.records.tfrecord import blocks
from shardctl.readers.records.tfrecord.blocks import NearBlocks
from shardctl.readers.records.tfrecord.scan import TFRecord
from tests.record_files import FarSource, counted_near, framed

KB = 1 << 10


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a remote block 4 kB, so that records of 1 kB are jumped over."""
    monkeypatch.setattr(blocks, "FAR_HEAD", KB // 4)
    monkeypatch.setattr(blocks, "FAR_BLOCK", 4 * KB)
    monkeypatch.setattr(blocks.FarBlocks, "hop", KB)


def asked(sizes: Sequence[int], *, checksums: bool = False) -> FarSource:
    """Count a remote file of records of these sizes, and return what was asked for."""
    source = FarSource(framed(*(bytes([size % 251]) * size for size in sizes)))
    found = TFRecord().count(source, checksums=checksums)
    assert (found.num_records, found.damage) == (len(sizes), None)
    if checksums:
        assert found.num_bytes_read == fetched(source) == source.num_bytes
    return source


def fetched(source: FarSource) -> int:
    return sum(stop - start for ranges in source.asked for start, stop in ranges)


def test_a_remote_file_of_one_block_is_one_request() -> None:
    assert asked([100] * 30).asked == [[(0, 30 * 116)]]
    assert asked([3000]).asked == [[(0, 3016)]]


@pytest.mark.parametrize("checksums", [True, False])
def test_small_records_far_away_are_read_block_by_block(checksums: bool) -> None:
    rng = random.Random(1)
    source = asked([rng.randrange(300) for _ in range(500)], checksums=checksums)
    ranges = [place for (place,) in source.asked]
    assert len(ranges) <= 2 + (source.num_bytes - KB // 4) // (4 * KB)
    assert ranges[0] == (0, KB // 4)
    # The rest of a record is left out, and nothing is read twice.
    gaps = [after[0] - before[1] for before, after in pairwise(ranges)]
    assert all(0 <= gap < 300 for gap in gaps)
    assert ranges[-1][1] == source.num_bytes
    assert (sum(gaps) == 0) == checksums


def test_headers_of_equal_records_far_away_are_asked_for_at_once() -> None:
    source = asked([2000] * 1000)
    assert len(source.asked) < 40
    assert max(map(len, source.asked)) == 64
    assert fetched(source) < 20 * KB


def test_headers_of_other_large_records_are_asked_for_one_by_one() -> None:
    rng = random.Random(1)
    source = asked([rng.randrange(1500, 9000) for _ in range(60)])
    assert 60 <= len(source.asked) <= 64
    assert fetched(source) < 2 * KB


def test_what_was_foreseen_and_is_not_there_does_no_harm() -> None:
    rng = random.Random(3)
    sizes: list[int] = []
    while len(sizes) < 900:
        sizes += [rng.choice([0, 50, 1500, 4000])] * rng.randrange(1, 80)
    asked(sizes)


def test_data_that_are_checked_are_all_read() -> None:
    asked([2000] * 50, checksums=True)
    asked([9000] * 5, checksums=True)


def test_only_headers_of_large_records_are_read_from_a_disk() -> None:
    for size in (5000, 20_000, 100_000):
        data = framed(bytes(size)) * 31
        found = counted_near(data, checksums=False)
        assert (found.num_records, found.damage) == (31, None)
        assert found.num_bytes_read < blocks.NEAR_HEAD + 33 * 12


def test_a_disk_without_the_calls_of_unix(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pread", "posix_fadvise"):
        monkeypatch.delattr(os, name)
    data = framed(bytes(20_000)) * 30
    assert counted_near(data, checksums=False).num_records == 30
    assert counted_near(data).num_records == 30


def test_what_comes_next_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, int]] = []

    def advise(file: int, start: int, length: int, advice: int) -> None:
        said.append((start, start + length))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.truncate(100 << 20)
        source = LocalSource(file, "records", 100 << 20)
        near = NearBlocks(source, 0)
        for start in range(0, 100 << 20, blocks.NEAR_BLOCK):
            near.read(start, 12, ahead=True)
    assert said[0][0] == 0
    assert said[-1][1] == 100 << 20
    assert all(before[1] == after[0] for before, after in pairwise(said))
    assert len(said) < 16
    said.clear()
    NearBlocks(source, 0).announce(0, 1 << 20, 256)  # sparse: headers alone
    assert said == []
