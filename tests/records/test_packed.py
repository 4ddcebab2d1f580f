"""What was compressed comes out as it went in; what is cut off or damaged is said."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.records.contents import DamagedError
from shardctl.records.streams import Unpacked, packed_as
from tests.byte_sources import far, near
from tests.cases import counted


def zstd(data: bytes) -> bytes:
    packed: bytes = (
        pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)
    )
    return packed


def old_lzma(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


WAYS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("bzip2", bz2.compress),
    ("xz", lzma.compress),
    ("xz", old_lzma),
    ("zstd", zstd),
]


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
    if pack is not old_lzma:  # which has no checksum
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


def test_zeros_are_not_counted_as_left() -> None:
    found = Unpacked(near(gzip.compress(b"ab" + bytes(3_000_000) + b"c")), "gzip")
    assert found.at(0, 2) == b"ab"
    assert found.is_within(1000)
    assert found.drain() == 1


def test_what_is_not_compressed_has_no_kind() -> None:
    for head in (b"", b"BZh", b"BZh91234567890", b"PK\x03\x04", b"train.jpg\0"):
        assert packed_as(head) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "zstandard", hidden)
    with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[files\]'"):
        Unpacked(near(b""), "zstd")
