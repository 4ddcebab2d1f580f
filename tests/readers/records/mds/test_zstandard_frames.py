"""Frames of Zstandard end where the library says that they do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shardctl.readers.records.mds import read_frame
from shardctl.readers.records.ranges.packed import PackedError
from shardctl.readers.records.ranges.window import Window
from tests.byte_sources import RECORDED, near
from tests.cases import counted


def test_a_frame_ends_behind_its_last_block() -> None:
    for file in sorted((RECORDED / "mds_zstd").glob("*.zstd")):
        data = file.read_bytes()
        frame = read_frame(Window(near(data + b"more")), walk=True)
        assert frame.end == len(data)
        assert frame.num_bytes is not None


@pytest.mark.parametrize("options", [{}, {"write_checksum": True}, {"write_content_size": False}])
def test_any_frame(options: dict[str, Any]) -> None:
    zstandard = pytest.importorskip("zstandard")
    rng = random.Random(11)
    for _ in counted(range(30)):
        size = rng.choice([0, 1, 200, 256, 257, 70_000, 400_000])
        data = rng.choice([rng.randbytes(size), bytes(size)])
        packed = zstandard.ZstdCompressor(level=rng.choice([1, 19]), **options).compress(data)
        frame = read_frame(Window(near(packed)), walk=True)
        assert frame.end == len(packed)
        stated = zstandard.get_frame_parameters(packed).content_size
        known = options.get("write_content_size", True)
        assert frame.num_bytes == (size if known else None)
        assert (stated == size) or not known
        assert read_frame(Window(near(packed)), walk=False).end is None


def test_a_frame_that_is_cut_off_ends_behind_the_file_or_is_refused() -> None:
    data = (RECORDED / "mds_zstd" / "shard.00000.mds.zstd").read_bytes()
    for cut in counted(range(4, len(data))):
        end, kind = len(data), "cut"
        try:
            end = read_frame(Window(near(data[:cut])), walk=True).end or 0
        except PackedError as error:
            kind = error.kind
        assert (end, kind) == (len(data), "cut")
    broken = bytearray(data)
    broken[7] |= 6  # the reserved kind of block
    with pytest.raises(PackedError, match="no block at byte"):
        read_frame(Window(near(bytes(broken))), walk=True)
