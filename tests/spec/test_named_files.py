"""Files known by the names that a plan file gives them, beside those of the dataset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange
from tests.spec.reads_cases import named_reads

TRAIN = Split(
    name="train",
    shard_lengths=(3, 2, 4),
    files=(ShardFiles(pattern="sub/d-train-\0", num_shards=3),),
)
TOY = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)), TRAIN))
READS = reads_of(TOY, [SplitRange(split=TRAIN, start=1, stop=9)])
ROWS = ("d-train-00000", 1, 2), ("d-train-00001", 0, 2), ("d-train-00002", 0, 4)
NAMED = named_reads(*ROWS, lengths=(3, 2, 4))


def test_files_known_by_name_are_the_same_reads() -> None:
    assert NAMED == READS
    assert READS == NAMED
    assert named_reads(*ROWS, lengths=(3, 2, 4), shards=(0, 1, 2)) == READS


@pytest.mark.parametrize(
    "other",
    [
        READS.select(slice(0, 2)),
        READS.select(np.array([0, 2, 1])),
        replace(READS, skip=np.array([0, 0, 0])),
        replace(READS, take=np.array([2, 2, 3])),
        named_reads(*ROWS, lengths=(3, 2, 5)),
        named_reads(*ROWS[:2], ("d-train-00003", 0, 4), lengths=(3, 2, 4)),
        reads_of(TOY, [SplitRange(split=TOY.splits[0], start=0, stop=1)]),
        3,
    ],
)
def test_reads_that_differ_in_anything_are_others(other: object) -> None:
    assert other != NAMED
    assert other != READS


def test_files_of_one_name_are_others_by_their_place() -> None:
    assert named_reads(*ROWS, lengths=(3, 2, 4), shards=(0, 2, 1)) != READS


def test_files_known_by_name_have_no_place_in_a_dataset() -> None:
    for ask in (lambda: NAMED.dataset, lambda: NAMED.first, lambda: list(NAMED)):
        with pytest.raises(ValueError, match="known by name alone"):
            ask()
    assert NAMED.shard_index is None
    assert NAMED.select(np.array([2, 0])).filenames() == ["d-train-00002", "d-train-00000"]
    assert NAMED.select(np.array([2, 0])).examples_in_shard.tolist() == [4, 3]
