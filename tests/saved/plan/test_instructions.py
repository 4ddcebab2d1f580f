"""The file instructions of a plan file: taken as they are, or refused by entry."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.saved.plan_file import read_instructions

SPLITS = {"train": 0, "test": 1}
RECORD = {"filename": "a", "split": "train", "skip": 1, "take": 2, "examples_in_shard": 3}


def test_records_become_columns_in_the_order_of_the_file() -> None:
    more = {"filename": "b", "split": "test", "skip": 0, "take": 4, "examples_in_shard": 4}
    reads = read_instructions([RECORD, more, RECORD], SPLITS, "x")
    assert reads.filenames() == ["a", "b", "a"]
    assert reads.split.tolist() == [0, 1, 0]
    assert reads.skip.tolist() == [1, 0, 1]
    assert reads.take.tolist() == [2, 4, 2]
    assert reads.examples_in_shard.tolist() == [3, 4, 3]
    assert reads.num_examples == 8


def test_an_index_tells_files_of_one_name_apart() -> None:
    records = [{**RECORD, "shard_index": index} for index in (7, 4)]
    reads = read_instructions(records, SPLITS, "x")
    assert reads.shard_index is not None
    assert reads.shard_index.tolist() == [7, 4]
    assert read_instructions([RECORD], SPLITS, "x").shard_index is None


def test_an_empty_list_holds_no_instruction() -> None:
    assert len(read_instructions([], SPLITS, "x")) == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "x must be a list, not nothing"),
        ({}, "x must be a list, not a mapping"),
        ([RECORD, 7], "x, entry 1: filename, split, skip, take, examples_in_shard are needed"),
        ([dict(reversed(RECORD.items()))], "are needed, in this order"),
        ([{**RECORD, "more": 1}], "x, entry 0: "),
        ([RECORD, {**RECORD, "shard_index": 0}], "x, entry 1: "),
        ([{**RECORD, "filename": 7}], "x, entry 0: filename, split"),
        ([{**RECORD, "split": "trian"}], "of a split; the splits are train, test"),
        ([{**RECORD, "split": None}], "of a split; the splits are train, test"),
        ([{**RECORD, "split": {}}], "of a split; the splits are train, test"),
        ([{**RECORD, "split": ["train"]}], "of a split; the splits are train, test"),
        ([{**RECORD, "skip": -1}], "x, entry 0: skip -1 is negative"),
        ([{**RECORD, "take": True}], "x, entry 0: take must be a whole number, not true"),
        ([{**RECORD, "take": 1.0}], "x, entry 0: take must be a whole number, not 1.0"),
        ([{**RECORD, "take": 2**63}], "x, entry 0: take 9223372036854775808 is more than"),
        ([RECORD, {**RECORD, "take": 3}], "x, entry 1: skip 1 and take 3 do not fit a file of 3"),
        ([RECORD, *[{**RECORD, "take": n} for n in (4, 3)]], "entry 1: skip 1 and take 4 do not"),
        ([{**RECORD, "skip": 4, "take": 0}], "skip 4 and take 0 do not fit a file of 3"),
        ([{**RECORD, "skip": 2**62, "take": 2**62}], "do not fit a file of 3 examples"),
    ],
)
def test_a_broken_list_is_refused_with_its_first_wrong_entry(value: Any, said: str) -> None:
    with pytest.raises(DatasetError) as refused:
        read_instructions(value, SPLITS, "x")
    assert said in str(refused.value)
