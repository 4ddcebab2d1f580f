"""Counts of shards that stay packed are those of their index, if the shard is as long as said."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from shardctl.readers.index.index import index
from tests.byte_sources import RECORDED


def brotli(folder: Path) -> Path:
    """Return a folder whose shards nobody can unpack, with an index that says how they are packed.

    The bytes of Brotli say nothing by themselves; here they are those of no format at all.
    """
    shutil.copytree(RECORDED / "mds_gz", folder)
    text = (folder / "index.json").read_text().replace("gz:3", "br:11").replace(".gz", ".br")
    (folder / "index.json").write_text(text)
    for path in folder.glob("*.gz"):
        path.rename(path.with_suffix(".br"))
        path.with_suffix(".br").write_bytes(b"\x1b" * path.with_suffix(".br").stat().st_size)
    return folder


def lengths(folder: Path, **options: Any) -> list[int]:
    return [n for split in index(folder, **options).splits for n in split.split.shard_lengths]


def test_the_index_says_what_cannot_be_unpacked(tmp_path: Path) -> None:
    found = index(brotli(tmp_path / "d"), cache=False)
    assert [split.split.num_examples for split in found.splits] == [37]
    assert (found.num_known, found.num_counted, found.broken) == (3, 0, ())
    assert any("3 files are packed in a way that is not unpacked here" in w for w in found.warnings)


def test_a_shard_of_another_length_is_not_taken_from_the_index(tmp_path: Path) -> None:
    folder = brotli(tmp_path / "d")
    (folder / "shard.00001.mds.br").write_bytes(b"short")
    found = index(folder, cache=False)
    assert [broken.path for broken in found.broken] == ["shard.00001.mds.br"]


def test_zstd_is_unpacked_where_its_library_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(RECORDED / "mds_zstd", tmp_path / "d")
    stated = json.loads((folder / "index.json").read_text())["shards"]
    expected = [shard["samples"] for shard in stated]
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "zstandard", hidden)
    monkeypatch.setattr("shardctl.readers.records.sidecars.find_spec", lambda name: None)
    assert lengths(folder, cache=False) == expected
