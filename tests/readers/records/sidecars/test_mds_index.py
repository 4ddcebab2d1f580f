"""MosaicML's index.json says the samples, sizes and hashes of shards, packed or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.readers.records.sidecars import ShardIndex
from tests.byte_sources import RECORDED


def recorded(name: str) -> Any:
    return json.loads((RECORDED / name / "index.json").read_text())


def test_what_the_library_wrote_is_said_of_its_files() -> None:
    for name in ("mds_plain", "mds_gz", "mds_zstd"):
        index = ShardIndex(recorded(name), folder="d/", said_by="index.json")
        total = 0
        for file in (RECORDED / name).glob("shard.*"):
            expected = index.expected(f"d/{file.name}")
            assert expected is not None
            assert expected.num_bytes == file.stat().st_size
            assert [kind for kind, _ in expected.hashes] == (
                ["sha1", "xxh64"] if name == "mds_zstd" else []
            )
            total += expected.num_examples
        assert total == 37
    packed = index.expected("d/shard.00000.mds.zstd")
    raw = index.expected("d/shard.00000.mds")
    assert packed is not None
    assert raw is not None
    assert (packed.compression, raw.compression) == ("zstd:7", None)
    assert packed.num_examples == raw.num_examples


def test_a_shard_is_there_packed_or_not() -> None:
    index = ShardIndex(recorded("mds_zstd"), folder="d/", said_by="index.json")
    names = {"d/shard.00000.mds", "d/shard.00001.mds.zstd", "d/index.json"}
    assert index.absent(names) == ["d/shard.00002.mds.zstd"]
    assert index.absent(set()) == index.absent({"e/shard.00000.mds"}) == []  # of another folder
    assert index.expected("e/shard.00000.mds") is None
    assert index.expected("d/other.mds") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 1}, "an index of shards of version 1, not 2"),
        ({"shards": {}}, "shards must be a list"),
        ({"shards": [{"samples": -1}]}, "samples -1 is negative"),
        ({"shards": [{"samples": 1}]}, "neither raw_data nor zip_data"),
        ({"shards": [{"samples": 1, "raw_data": {}}]}, "bytes must be a whole number"),
    ],
)
def test_a_faulty_index_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        ShardIndex({"version": 2, "shards": [], **change}, folder="", said_by="index.json")
