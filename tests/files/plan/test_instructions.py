"""The list of file instructions in a plan file: columns, or one line about the entry."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.files.plan.instructions import read_instructions

NAMES = {"test": 0, "train": 1}


def record(**changes: Any) -> dict[str, Any]:
    fields = {"filename": "d-0", "split": "train", "skip": 1, "take": 2, "examples_in_shard": 3}
    return {**fields, **changes}


def test_records_become_columns() -> None:
    reads = read_instructions([record(), record(filename="d-1", split="test")], NAMES, "list")
    assert reads.filenames() == ["d-0", "d-1"]
    assert reads.split_names == ("test", "train")
    assert (reads.split.tolist(), reads.skip.tolist()) == ([1, 0], [1, 1])
    assert (reads.take.tolist(), reads.examples_in_shard.tolist()) == ([2, 2], [3, 3])
    assert reads.shard_index is None
    assert not reads.names_repeat


def test_files_of_one_name_come_with_their_place() -> None:
    reads = read_instructions([record(shard_index=4), record(shard_index=2)], NAMES, "list")
    assert reads.names_repeat
    assert reads.shard_index is not None
    assert reads.shard_index.tolist() == [4, 2]


def test_a_list_may_be_empty() -> None:
    reads = read_instructions([], NAMES, "list")
    assert (len(reads), reads.num_examples, reads.filenames()) == (0, 0, [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "list must be a list, not nothing"),
        ([3], "list, entry 0: filename, split, .* are needed, in this order, not 3"),
        ([record(), {**record(), "more": 1}], "list, entry 1: .* are needed, in this order"),
        ([record(), record(shard_index=1)], "list, entry 1: .* are needed, in this order"),
        ([record(split="trian")], "split 'trian'; the splits are test, train"),
        ([record(filename=3)], "entry 0: file 3 of split 'train'"),
        ([record(skip=-1)], "list, entry 0: skip -1 is negative"),
        ([record(take=1.5)], "list, entry 0: take must be a whole number, not 1.5"),
        ([record(take=True)], "list, entry 0: take must be a whole number, not true"),
        ([record(examples_in_shard=2**63)], "is more than an int64 holds"),
        ([record(), record(take=3)], "list, entry 1: skip 1 and take 3 do not fit a file of 3"),
        ([record(skip=2**62, take=2**62)], "do not fit a file of 3 examples"),
    ],
)
def test_what_is_no_list_of_instructions_is_refused(value: object, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read_instructions(value, NAMES, "list")
