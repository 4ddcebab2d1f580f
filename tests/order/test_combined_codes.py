"""Names of the examples of several readers: files in one folder, in several, and of one name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import combined
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange


def _split(name: str, *folders: str) -> Split:
    files = tuple(
        ShardFiles(data_dir=folder, pattern=f"d-{name}-\0", num_shards=1) for folder in folders
    )
    return Split(name=name, shard_lengths=(4,) * len(folders), files=files)


def _reads(dataset: Dataset, split: Split, start: int, stop: int) -> Reads:
    return reads_of(dataset, [SplitRange(split=split, start=start, stop=stop)])


def test_each_reader_names_files_by_the_folders_that_it_reads() -> None:
    days, one = _split("train", "/data/mon/d", "/data/tue/d"), _split("test", "/data/mon/d")
    dataset = Dataset(name="d", splits=(days, one))
    given = [_reads(dataset, days, 0, 8), _reads(dataset, one, 0, 4)]
    codes = ExampleCodes(dataset, ["train", "test"], *given)
    assert codes.tfds_ids([0, 5, 9]) == [
        "mon/d/d-train-00000__0",
        "tue/d/d-train-00000__1",
        "d-test-00000__1",
    ]
    for code in (0, 5, 9):
        assert codes.parse_tfds_id(codes.tfds_ids([code])[0]) == code


def test_readers_that_call_a_file_differently_are_refused() -> None:
    days = _split("train", "/data/mon/d", "/data/tue/d")
    dataset = Dataset(name="d", splits=(days,))
    given = _reads(dataset, days, 0, 8), _reads(dataset, days, 0, 4)
    codes = ExampleCodes(dataset, ["train"], *given)
    assert codes.names([5]) == ["5"]
    with pytest.raises(UsageError, match="tfds_ids of train differ from reader to reader"):
        codes.tfds_ids([5])


def test_a_file_of_two_datasets_is_asked_for_by_its_split() -> None:
    old = Dataset(name="d", version="1.0.0", splits=(_split("train", "/data/d/1.0.0"),))
    whole = combined([old, replace(old, version="2.0.0", splits=(_split("train", "/d/2.0.0"),))])
    given = [_reads(whole, split, 0, 4) for split in whole.splits]
    codes = ExampleCodes(whole, [split.name for split in whole.splits], *given)
    assert codes.tfds_ids([1, 5]) == ["d-train-00000__1"] * 2
    assert codes.parse("d-2.0.0/train:1") == 5
    with pytest.raises(UsageError, match=r"d-1\.0\.0/train and d-2\.0\.0/train"):
        codes.parse_tfds_id("d-train-00000__1")
