"""File names in a tfds_id: base names, or with the folders in which the files differ."""

from __future__ import annotations

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.tfds_names import TfdsNames

FOLDERS = ("/data/mon/d/1.0.0", "/data/tue/d/1.0.0")
SPLIT = Split(
    name="train",
    shard_lengths=(2, 1, 2, 1),
    files=tuple(ShardFiles(data_dir=folder, pattern="d-\0", num_shards=2) for folder in FOLDERS),
)
TOY = Dataset(name="d", splits=(SPLIT,))


def names(start: int, stop: int, split: Split = SPLIT) -> TfdsNames:
    dataset = Dataset(name="d", splits=(split,))
    reads = reads_of(dataset, [SplitRange(split=split, start=start, stop=stop)])
    return TfdsNames(reads, {0: split})


def test_files_that_are_read_of_two_folders_are_called_by_them() -> None:
    every = names(0, 6).of_split(SPLIT)
    assert every == tuple(f"{day}/d/1.0.0/d-0000{i}" for day in ("mon", "tue") for i in (0, 1))
    assert [names(0, 6).of_shard(SPLIT, shard) for shard in range(4)] == list(every)


def test_of_one_folder_the_base_name_is_enough() -> None:
    assert names(0, 3).of_split(SPLIT) == ("d-00000", "d-00001") * 2
    assert names(3, 6).of_shard(SPLIT, 2) == "d-00000"


def test_folders_may_stand_in_the_names_themselves() -> None:
    paths = ("a/x/d-0", "a/y/d-0")
    files = ShardFiles(names=paths, num_shards=2)
    split = Split(name="train", shard_lengths=(1, 1), files=(files,))
    assert names(0, 1, split).of_split(split) == ("d-0", "d-0")
    assert names(0, 2, split).of_shard(split, 1) == "y/d-0"  # the last folder differs
