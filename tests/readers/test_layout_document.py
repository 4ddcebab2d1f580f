"""A written layout reads back as the same dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.readers.layout_document import layout_document
from shardctl.readers.layout_file import dataset_from_layout
from tests.cases import check_cases
from tests.strategies import datasets


def with_files(files: ShardFiles) -> Dataset:
    """Return a dataset of two shards with these file names."""
    split = Split(name="train", shard_lengths=(1, 2), files=(files,))
    return Dataset(name="toy", splits=(split,))


def read(document: Any) -> Dataset:
    return dataset_from_layout(document, stem="toy", folder=Path("/data"))


@pytest.mark.parametrize(
    ("dataset", "document"),
    [
        pytest.param(
            Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 0)),)),
            {
                "name": "toy",
                "file_format": "tfrecord",
                "splits": {"train": {"shard_lengths": [3, 0]}},
            },
            id="the least",
        ),
        pytest.param(
            Dataset(
                name="toy",
                config="small",
                version="1.0.0",
                file_format="parquet",
                ordered=True,
                splits=(Split(name="train", shard_lengths=(1,), num_bytes=9),),
            ),
            {
                "name": "toy",
                "config": "small",
                "version": "1.0.0",
                "file_format": "parquet",
                "ordered": True,
                "splits": {"train": {"shard_lengths": [1], "num_bytes": 9}},
            },
            id="everything but files",
        ),
        pytest.param(
            with_files(
                ShardFiles(data_dir="/d", pattern="toy-train.tfrecord-\0-of-00002", num_shards=2)
            ),
            {"shard_lengths": [1, 2]},
            id="names that are TFDS's own are left out",
        ),
        pytest.param(
            with_files(ShardFiles(data_dir="/d", pattern="{a}/x-\0", num_shards=2)),
            {"shard_lengths": [1, 2], "filepath_template": "{{a}}/x-{SHARD_INDEX}"},
            id="a template of one's own, its braces doubled",
        ),
        pytest.param(
            with_files(ShardFiles(data_dir="/d", num_shards=2, names=("b", "sub/a"))),
            {"shard_lengths": [1, 2], "filenames": ["b", "sub/a"]},
            id="names of one's own",
        ),
    ],
)
def test_a_layout_says_what_cannot_be_left_out(
    dataset: Dataset, document: dict[str, object]
) -> None:
    found = layout_document(dataset)
    if "splits" not in document:
        assert found["data_dir"] == "/d"
        found = found["splits"]["train"]  # type: ignore[index]
    assert found == document


def test_parts_in_several_folders_are_named_from_the_folder_they_share() -> None:
    files = tuple(
        ShardFiles(data_dir=folder, pattern="x-\0", num_shards=1) for folder in ("/d/1", "/d/2/3")
    )
    split = Split(name="train", shard_lengths=(1, 2), files=files)
    found = layout_document(Dataset(name="toy", splits=(split,)))
    assert found["data_dir"] == "/d"
    assert found["splits"] == {
        "train": {"shard_lengths": [1, 2], "filenames": ["1/x-00000", "2/3/x-00000"]}
    }


def test_a_written_layout_reads_back_the_same() -> None:
    def check(dataset: Dataset) -> None:
        text = yaml.safe_dump(layout_document(dataset), sort_keys=False)
        again = read(yaml.safe_load(text))
        assert replace(again, origin=dataset.origin) == dataset
        assert again.fingerprint == dataset.fingerprint

    check_cases(datasets(), check, 200)


@pytest.mark.parametrize(
    "files",
    [
        (ShardFiles(data_dir="/data", pattern="{a}/x-\0", num_shards=2),),
        (ShardFiles(data_dir="/data", num_shards=2, names=("b", "sub/a")),),
        (
            ShardFiles(data_dir="/data/one", pattern="x-\0", num_shards=1),
            ShardFiles(data_dir="/data/two/three", pattern="x-\0", num_shards=1),
        ),
    ],
)
def test_unusual_file_names_read_back_the_same(files: tuple[ShardFiles, ...]) -> None:
    dataset = read({"splits": {"train": {"shard_lengths": [1, 2]}}})
    dataset = replace(dataset, splits=(replace(dataset.splits[0], files=files),))
    again = read(layout_document(dataset))
    paths = [str(Path(*map(str, again.splits[0].location(i)))) for i in range(2)]
    assert paths == [str(Path(*map(str, dataset.splits[0].location(i)))) for i in range(2)]
    assert again.fingerprint == dataset.fingerprint
