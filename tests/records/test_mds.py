"""MDS shards, those that their library wrote and damaged ones; no count is wrong in silence."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.records.contents import FileContents
from shardctl.records.mds import count_mds
from tests.byte_sources import RECORDED, far, near
from tests.cases import counted, some

# MDS shards, put together as their library does.


COLUMNS = json.dumps(
    {"column_encodings": ["int"], "column_names": ["x"], "column_sizes": [8], "format": "mds"}
).encode()


def shard(*samples: bytes) -> bytes:
    """Return a shard as encode_joint_shard of streaming/base/format/mds/writer.py makes it."""
    offsets = np.array([0, *map(len, samples)]).cumsum().astype(np.uint32)
    offsets += 4 + offsets.nbytes + len(COLUMNS)
    return np.uint32(len(samples)).tobytes() + offsets.tobytes() + COLUMNS + b"".join(samples)


def read(data: bytes, **options: Any) -> FileContents:
    return count_mds(near(data), **options)


def recorded() -> list[tuple[Path, int]]:
    found = []
    for folder in ("mds_plain", "mds_gz", "mds_zstd"):
        index = json.loads((RECORDED / folder / "index.json").read_text())
        for stated in index["shards"]:
            file = stated["zip_data"] or stated["raw_data"]
            found.append((RECORDED / folder / file["basename"], stated["samples"]))
    return found


@pytest.mark.parametrize(("path", "expected"), recorded(), ids=lambda value: str(value)[-14:])
def test_what_its_library_wrote(path: Path, expected: int) -> None:
    if path.suffix == ".zstd":
        pytest.importorskip("zstandard")
    data = path.read_bytes()
    for checksums in (True, False):
        for source in (near(data), far(data)):
            report: list[int] = []
            found = count_mds(source, checksums=checksums, report=report.append)
            assert (found.num_records, found.damage) == (expected, None)
            assert found.num_bytes == len(data)
            assert found.num_bytes_read <= len(data)


def zstd(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return packed


PACKINGS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, zstd]


@pytest.mark.parametrize(
    ("pack", "checksums"), [(pack, how) for pack in PACKINGS for how in (True, False)][:-1]
)
def test_a_shard_that_is_cut_off_anywhere_is_named(
    pack: Callable[[bytes], bytes], checksums: bool
) -> None:
    data = pack(shard(*(b"x" * (index % 7) for index in range(40))))
    assert read(data, checksums=checksums).num_records == 40
    for cut in counted(range(len(data))):
        for source in (near(data[:cut]), far(data[:cut])):
            assert some(count_mds(source, checksums=checksums).damage).text, cut
    assert read(data + b"x", checksums=checksums).damage is not None


@pytest.mark.parametrize("pack", PACKINGS)
def test_a_changed_byte_never_makes_another_count(pack: Callable[[bytes], bytes]) -> None:
    rng = random.Random(10)
    data = pack(shard(*(b"x" * 9 for _ in range(40))))
    num_found = 0
    for byte in counted(range(len(data))):
        damaged = bytearray(data)
        damaged[byte] ^= 1 << rng.randrange(8)
        for checksums in (True, False):
            found = read(bytes(damaged), checksums=checksums)
            assert found.num_records == 40 or found.damage is not None, byte
            num_found += found.damage is not None
    assert num_found > 40


def test_offsets_are_followed_with_checksums() -> None:
    data = bytearray(shard(b"aaaa", b"bbbb", b"cccc"))
    data[8:12] = b"\xff\xff\xff\x7f"
    assert read(bytes(data)).damage is None
    found = read(bytes(data), checksums=True)
    assert found.damage is not None
    assert (found.damage.kind, found.damage.byte) == ("broken", 12)


def test_little_of_a_large_shard_is_read() -> None:
    data = shard(*(b"x" * 1000 for _ in range(20_000)))
    for source in (near(data), far(data)):
        found = count_mds(source)
        assert found.num_records == 20_000
        assert source.num_bytes_read == found.num_bytes_read < 200_000
    packed = gzip.compress(data, 1)
    source = near(packed)
    assert count_mds(source).num_records == 20_000
    assert source.num_bytes_read < (1 << 18)


def test_what_is_no_shard_is_said() -> None:
    for data, said in (
        (b"", "the file is empty"),
        (b"ab", "2 bytes of its header are there"),
        (b"hello, world" * 9, "its header contradicts itself; brotli and snappy show in the name"),
        (shard(b"a").replace(b"column", b"colour"), "no columns are behind its offsets"),
        (shard(b"a")[:-1], "its samples end at byte "),
    ):
        damage = some(read(data).damage)
        assert said in damage.text
    assert read(shard()).num_records == 0


def test_without_its_library_a_shard_is_left_to_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "zstandard", hidden)
    data = (RECORDED / "mds_zstd" / "shard.00000.mds.zstd").read_bytes()
    found = read(data)
    assert found.damage is not None
    assert (found.num_records, found.damage.kind) == (None, "compressed")
    assert "pip install 'zstandard>=0.20'; or index.json says how many samples" in found.damage.text
