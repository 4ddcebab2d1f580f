"""Builders, file orders and imports as code; what reads with them is tested with the pipelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.core.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.simulate import simulate
from shardctl.readers.several_folders import merge_datasets
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.rendering.python import reader
from shardctl.rendering.python.pipeline import simulate_python
from tests.rendering.python.pasted import read, run
from tests.tfds_datasets import build_dataset


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


def test_a_list_tells_files_of_one_name_apart_by_their_folders(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    folders = [build_dataset(tmp_path / day, splits={"train": [1, 2]}) for day in ("mon", "tue")]
    dataset = merge_datasets([read_tfds_folder(folder) for folder in folders])
    names = [f"{day}/toy/1.0.0/toy-train.tfrecord-0000{i}-of-00002" for day, i in ORDER]
    settings = ReadSettings(cycle=1, file_order=tuple(names))
    made = run(simulate_python(simulate(dataset, "train", settings, take=None)))
    files = [str(i) for _, i in ORDER for _ in range(i + 1)]
    assert [name.split("-")[2][-1] for name in read(made["ds"])] == files
    ids = [example["tfds_id"].decode() for example in made["ds"].as_numpy_iterator()]
    days = [day for day, i in ORDER for _ in range(i + 1)]
    assert ["tue" if "tue" in name else "mon" for name in ids] == days


ORDER = [("tue", 1), ("mon", 0), ("mon", 1), ("tue", 0)]


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
