"""File instructions: skip and take within each file, as TFDS's get_file_instructions has them."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.spec.subsplit import (
    FileInstruction,
    SplitRange,
    file_instructions,
)
from tests.cases import check_cases
from tests.spec.tfds_splits import ids_read, toy_dataset
from tests.strategies import shard_lengths


def instructions(lengths: tuple[int, ...], start: int, stop: int) -> list[tuple[int, ...]]:
    """Return (shard, skip, take, of, first id) of each instruction."""
    files = ShardFiles(pattern="\0", num_shards=len(lengths))
    split = Split(name="train", shard_lengths=lengths, files=(files,))
    return [
        (int(i.filename), i.skip, i.take, i.examples_in_shard, i.first_id)
        for i in file_instructions([SplitRange(split=split, start=start, stop=stop)])
    ]


@pytest.mark.parametrize(
    ("lengths", "start", "stop", "expected"),
    [
        ((3, 4, 3), 0, 10, [(0, 0, 3, 3, 0), (1, 0, 4, 4, 3), (2, 0, 3, 3, 7)]),
        ((3, 4, 3), 4, 6, [(1, 1, 2, 4, 4)]),  # within one shard
        ((3, 4, 3), 3, 7, [(1, 0, 4, 4, 3)]),  # a whole shard, its neighbours untouched
        ((3, 4, 3), 2, 8, [(0, 2, 1, 3, 2), (1, 0, 4, 4, 3), (2, 0, 1, 3, 7)]),
        ((3, 4, 3), 5, 5, []),
        ((3, 4, 3), 10, 10, []),
        ((0, 0, 2, 0, 2, 0), 1, 3, [(2, 1, 1, 2, 1), (4, 0, 1, 2, 2)]),  # empty shards get none
        ((0, 0, 2, 0), 0, 2, [(2, 0, 2, 2, 0)]),
        ((0, 0), 0, 0, []),
        ((), 0, 0, []),
    ],
)
def test_a_range_becomes_a_skip_and_a_take_in_each_file(
    lengths: tuple[int, ...], start: int, stop: int, expected: list[tuple[int, ...]]
) -> None:
    assert instructions(lengths, start, stop) == expected


def test_instructions_are_those_of_tfds() -> None:
    from tensorflow_datasets.core.utils import shard_utils

    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, first, second = case
        start, stop = sorted(min(bound, sum(lengths)) for bound in (first, second))
        theirs = shard_utils.get_file_instructions(
            start, stop, [str(shard) for shard in range(len(lengths))], lengths
        )
        ours = instructions(lengths, start, stop)
        assert [row[:4] for row in ours] == [
            (int(i.filename), i.skip, i.take, i.examples_in_shard) for i in theirs
        ]
        assert [skip + take == of for _, skip, take, of, _ in ours] == [i.takes_all for i in theirs]

    cases = st.tuples(shard_lengths(12), st.integers(0, 60), st.integers(0, 60))
    check_cases(cases, check, 250)


def test_ranges_are_read_one_after_the_other_each_from_its_first_id() -> None:
    def check(case: tuple[tuple[int, ...], list[tuple[int, int]]]) -> None:
        lengths, bounds = case
        split = toy_dataset({"train": lengths}).split("train")
        ranges = []
        for pair in bounds:
            start, stop = sorted(min(bound, sum(lengths)) for bound in pair)
            ranges.append(SplitRange(split=split, start=start, stop=stop))
        found = file_instructions(ranges)
        expected = [("train", i) for piece in ranges for i in range(piece.start, piece.stop)]
        assert ids_read(found, {"train": lengths}) == expected
        from_first_ids = [("train", i.first_id + k) for i in found for k in range(i.take)]
        assert from_first_ids == expected

    pair = st.tuples(st.integers(0, 40), st.integers(0, 40))
    cases = st.tuples(shard_lengths(), st.lists(pair, max_size=4))
    check_cases(cases, check, 100)


@pytest.mark.parametrize(("skip", "take"), [(-1, 1), (0, -1), (0, 4), (3, 1), (4, 0)])
def test_an_instruction_that_does_not_fit_its_file_cannot_be_made(skip: int, take: int) -> None:
    with pytest.raises(UsageError, match="do not fit examples_in_shard=3"):
        FileInstruction(
            filename="f", split="train", skip=skip, take=take, examples_in_shard=3, first_id=0
        )


def test_a_split_without_files_cannot_be_read() -> None:
    split = Split(name="train", shard_lengths=(3,))
    with pytest.raises(DatasetError, match="'train' names no files"):
        file_instructions([SplitRange(split=split, start=0, stop=3)])
    assert file_instructions([SplitRange(split=split, start=3, stop=3)]) == ()
