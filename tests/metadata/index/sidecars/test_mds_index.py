"""MosaicML's index.json says the samples, sizes and hashes of shards, packed or not."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from shardctl.metadata.index.sidecars import Sidecars
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import LocalStore
from tests.byte_sources import RECORDED


def of(path: Path) -> StoredFile:
    found = LocalStore().status(str(path))
    assert found is not None
    return found


def written(folder: Path, **index: Any) -> Sidecars:
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [], **index}))
    return Sidecars([of(folder / "index.json")])


def stating(path: Path, **hashes: str) -> dict[str, Any]:
    raw = {"basename": path.name, "bytes": path.stat().st_size, "hashes": hashes}
    return {"samples": 3, "raw_data": raw}


def test_what_the_library_wrote_is_said_of_its_files() -> None:
    for name in ("mds_plain", "mds_gz", "mds_zstd"):
        index = Sidecars([of(RECORDED / name / "index.json")])
        total = 0
        for file in (RECORDED / name).glob("shard.*"):
            (expected,) = index.said.get(str(file), [])
            assert expected.num_bytes == file.stat().st_size
            assert [kind for kind, _ in expected.hashes] == (
                ["sha1", "xxh64"] if name == "mds_zstd" else []
            )
            total += expected.num_examples
        assert total == 37
    (packed,) = index.said.get(str(RECORDED / "mds_zstd" / "shard.00000.mds.zstd"), [])
    (raw,) = index.said.get(str(RECORDED / "mds_zstd" / "shard.00000.mds"), [])
    assert packed.num_examples == raw.num_examples


def test_a_shard_is_there_packed_or_not() -> None:
    folder = str(RECORDED / "mds_zstd")
    index = Sidecars([of(RECORDED / "mds_zstd" / "index.json")])
    names = {f"{folder}/shard.00000.mds", f"{folder}/shard.00001.mds.zstd", f"{folder}/index.json"}
    assert index.absent(names) == [f"{folder}/shard.00002.mds.zstd"]
    assert index.absent(set()) == index.absent({"e/shard.00000.mds"}) == []  # of another folder
    assert (
        index.said.get("e/shard.00000.mds", []) == index.said.get(f"{folder}/other.mds", []) == []
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 1}, "an index of shards of version 1, not 2"),
        ({"shards": {}}, "shards must be a list"),
        ({"shards": [{"samples": -1, "raw_data": {}}]}, "basename must be text"),
        ({"shards": [{"samples": 1}]}, "neither raw_data nor zip_data"),
        ({"shards": [{"samples": 1, "raw_data": {"basename": "a"}}]}, "bytes must be a whole"),
    ],
)
def test_a_faulty_index_is_a_problem(change: dict[str, object], said: str, tmp_path: Path) -> None:
    index = written(tmp_path, **change)
    (problem,) = index.problems
    assert said in problem
    assert not index


def test_recorded_hashes_are_those_of_the_files() -> None:
    folder = RECORDED / "mds_zstd"
    index = Sidecars([of(folder / "index.json")])
    assert list(index.hash_problems(map(of, folder.glob("shard.*")))) == []
    assert index.problems == []


def test_another_hash_is_named_and_a_file_that_changed(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"abc")
    sha1 = hashlib.sha1(b"abc").hexdigest()
    hashes = {"a": "0" * 40, "b": sha1, "c": sha1.upper()}
    shards = [stating(tmp_path / name, sha1=value) for name, value in hashes.items()]
    index = written(tmp_path, shards=shards)
    files = [of(tmp_path / name) for name in hashes]
    (tmp_path / "c").write_bytes(b"abcd")
    first, second = index.hash_problems(files)
    assert first == (files[0], f"has sha1 {sha1}, not '{'0' * 40}'")
    assert second[0] == files[2]
    assert second[1].startswith("cannot be read: ")


def test_unknown_algorithms_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "xxhash", hidden)
    (tmp_path / "a").write_bytes(b"abc")
    index = written(
        tmp_path, shards=[stating(tmp_path / "a", nohash="1", xxh64="2", shake_128="3")]
    )
    assert list(index.hash_problems([of(tmp_path / "a")])) == []
    assert index.problems == [
        "index.json states hashes of nohash, which cannot be compared here",
        "index.json states hashes of shake_128, which cannot be compared here",
        "index.json states hashes of xxh64, which cannot be compared here: "
        "pip install 'shardctl[files]'",
    ]


@pytest.mark.parametrize(
    ("num_examples", "num_bytes", "said"),
    [
        (3, 3, None),
        (4, 3, "holds 4 examples, and index.json says 3"),
        (1, 9, "holds 1 example, and index.json says 3"),
        (3, 9, "has 9 bytes, and index.json says 3"),
    ],
)
def test_counts_and_sizes_are_compared(
    num_examples: int, num_bytes: int, said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    index = written(tmp_path, shards=[stating(tmp_path / "a")])
    file = StoredFile(path=str(tmp_path / "a"), num_bytes=num_bytes)
    assert index.disagreement(file, num_examples) == said
