"""Builders, file orders and imports as code; what reads with them is tested with the pipelines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.code import reader
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.metadata.reference import merge_datasets


def test_modules_are_imported_where_they_are_used() -> None:
    assert list(reader.imports(['x = "photos.tfrecord/os.py"', "# tf.random"])) == [reader.TFDS]
    assert list(reader.imports(["y = f(os.fspath(x))", "tf.random.set_seed(1)"])) == [
        "import os",
        "",
        reader.TENSORFLOW,
        reader.TFDS,
    ]


def test_folders_are_read_in_their_order() -> None:
    def folder(data_dir: str | None, version: str) -> Dataset:
        files = ShardFiles(data_dir=data_dir, pattern="d-\0", num_shards=1)
        train = Split(name="train", shard_lengths=(3,), files=(files,))
        return Dataset(name="d", splits=(train,), data_dir=data_dir, version=version)

    merged = merge_datasets([folder("/monday", "1.0.0"), folder(None, "1.0.1")])
    assert list(reader.builder(merged)) == [
        "builder = tfds.builder_from_directories(",
        "    [",
        '        "/monday",',
        '        tfds.builder("d:1.0.1").data_dir,',
        "    ]",
        ")",
    ]


def test_counted_files_are_found_by_what_named_them() -> None:
    split = Split(name="train", shard_lengths=(2,))
    files = Dataset(name="d", splits=(split,), origin=COUNTED_FILES, reference="/data/t-*")
    lines = list(reader.builder(files))
    assert lines[1:] == ['builder = shardctl.tfds.record_files("/data/t-*")']
    assert list(reader.imports(lines)) == [reader.BRIDGE, reader.TFDS]
    other = replace(files, reference="/data/u@2", splits=(replace(split, name="test"),))
    both = merge_datasets([files, other])
    assert list(reader.builder(both))[1:] == [
        'builder = shardctl.tfds.record_files(["/data/t-*", "/data/u@2"])'
    ]
    with pytest.raises(UsageError, match="d: its files are GZIP, which TFDS does not read"):
        list(reader.builder(replace(files, compression="GZIP")))
    with pytest.raises(UsageError, match="d: no code finds its files; write them down with shardc"):
        list(reader.builder(replace(files, reference=None)))
