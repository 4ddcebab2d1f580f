"""A file read forwards, unpacked as a stream, or by a copy of a part of it."""

from __future__ import annotations

import gzip
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.records import decompress as partial_copy
from shardctl.records.contents import DamagedError
from shardctl.records.decompress import Unpacked, Window, packed_as
from tests.byte_sources import far, near
from tests.cases import counted


def test_bytes_are_those_of_the_source_wherever_they_are_asked_for() -> None:
    rng = random.Random(1)
    data = rng.randbytes(700_000)
    for case in counted(range(60)):
        source = (near if case % 2 else far)(data)
        report: list[int] = []
        window = Window(source, report.append)
        position = 0
        while position <= len(data):
            size = rng.choice([1, 8, 512, 4000, 300_000])
            assert window.at(position, size) == data[position : position + size]
            position += rng.choice([1, 100, 5_000, 200_000])
        assert window.num_bytes_read == sum(report) == source.num_bytes_read


def test_near_records_are_read_in_blocks_and_far_ones_alone() -> None:
    data = bytes(1 << 24)
    dense, sparse = near(data), near(data)
    window = Window(dense)
    for position in range(0, 1 << 20, 512):
        window.at(position, 512)
    assert len(dense.ranges) <= 5
    window = Window(sparse)
    for position in range(0, len(data), 1 << 20):
        window.at(position, 512)
    assert sparse.num_bytes_read == 15 * 512 + (1 << 12)  # the first time nothing is known


def test_a_request_far_away_is_worth_some_megabytes() -> None:
    data = bytes(1 << 24)
    source = far(data)
    window = Window(source)
    for position in range(0, len(data), 100_000):
        window.at(position, 512)
    assert len(source.ranges) <= 5
    assert window.is_within(len(data))
    assert not window.is_within(len(data) + 1)


def test_behind_the_end_is_nothing() -> None:
    window = Window(near(b"abc"))
    assert (window.at(0, 2), window.at(2, 5), window.at(3, 1), window.at(99, 1)) == (
        b"ab",
        b"c",
        b"",
        b"",
    )


def zstd(data: bytes) -> bytes:
    packed: bytes = (
        pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)
    )
    return packed


WAYS: list[tuple[str, Callable[[bytes], bytes]]] = [("gzip", gzip.compress), ("zstd", zstd)]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "pack"), WAYS)
def test_bytes_are_those_that_were_packed(kind: str, pack: Callable[[bytes], bytes]) -> None:
    rng = random.Random(3)
    for case in counted(range(8)):
        data = rng.choice([rng.randbytes(200_000), b"a" * 1_000_000, bytes(600_000), b"x"])
        packed = pack(data)
        assert packed_as(packed[:16]) == kind
        source, report = (near if case % 2 else far)(packed), list[int]()
        found, position = Unpacked(source, kind, report.append), 0
        while position < len(data):
            size = rng.choice([1, 512, 100_000])
            assert found.at(position, size) == data[position : position + size]
            position += rng.choice([1000, 500_000])
        assert found.is_within(len(data))
        assert not found.is_within(len(data) + 1)
        assert found.drain() == 0
        assert found.behind() == b""
        assert found.num_bytes_read == sum(report) == len(packed)


@pytest.mark.parametrize(("kind", "pack"), WAYS)
def test_a_stream_that_is_cut_off_or_changed_is_said(
    kind: str, pack: Callable[[bytes], bytes]
) -> None:
    rng = random.Random(4)
    packed = pack(rng.randbytes(5000))
    for _ in counted(range(40)):
        cut = Unpacked(near(packed[: rng.randrange(6, len(packed))]), kind)
        with pytest.raises(DamagedError, match=f"the {kind} file is cut off") as raised:
            cut.drain()
        assert "kind='cut'" in str(raised.value.contents)
    for _ in counted(range(40)):
        damaged = bytearray(packed)
        damaged[rng.randrange(40, len(packed))] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedError):
            Unpacked(near(bytes(damaged)), kind).drain()


def test_what_follows_the_first_stream_is_seen_but_for_zeros() -> None:
    packed = gzip.compress(b"abc")
    for rest, left in ((b"", b""), (bytes(600), b""), (packed, packed.rstrip(b"\0"))):
        found = Unpacked(near(packed + rest), "gzip")
        assert found.drain() == 3
        assert found.behind() == left


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "zstandard", hidden)
    with pytest.raises(MissingDependencyError, match=r"pip install 'zstandard>=0.20'"):
        Unpacked(near(b""), "zstd")


def test_it_is_as_long_as_the_source_and_takes_no_room_for_the_rest() -> None:
    data = bytes(range(1, 256)) * 40_000
    source, report = far(data), list[int]()
    with partial_copy.partial_copy(source, 10_000_000, len(data), report=report.append) as path:
        copied = Path(path).read_bytes()
        assert copied[10_000_000:] == data[10_000_000:]
        assert copied[:10_000_000] == bytes(10_000_000)
        assert os.stat(path).st_blocks * 512 < 1_000_000
    assert not os.path.exists(path)
    assert sum(report) == source.num_bytes_read == len(data) - 10_000_000


def test_few_large_copies_are_there_at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(partial_copy, "_LARGE", 2)
    at_once = partial_copy._at_once
    with partial_copy.partial_copy(far(b"abcd"), 0, 4), partial_copy.partial_copy(far(b"ab"), 0, 2):
        assert at_once._value == 1
    assert at_once._value == 2
