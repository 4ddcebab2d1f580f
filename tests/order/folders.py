"""A split whose files lie in several folders."""

from __future__ import annotations

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange


def spread(*folders: str) -> tuple[Dataset, Split]:
    """Return a dataset whose one split has two shards of 2 and 1 examples in each folder."""
    files = tuple(ShardFiles(data_dir=f, pattern="d-\0", num_shards=2) for f in folders)
    split = Split(name="train", shard_lengths=(2, 1) * len(folders), files=files)
    return Dataset(name="d", splits=(split,)), split


def codes_of(dataset: Dataset, split: Split, start: int, stop: int) -> ExampleCodes:
    table = reads_of(dataset, [SplitRange(split=split, start=start, stop=stop)])
    return ExampleCodes(dataset, ["train"], table)
