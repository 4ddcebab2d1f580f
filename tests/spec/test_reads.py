"""File instructions as columns: the same as those made one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.reads import Reads, filenames_of, joined, reads_of
from shardctl.spec.subsplit import FileInstruction, SplitRange, file_instructions
from tests.spec.reads_cases import named_reads
from tests.strategies import datasets

Example = tuple[str, int]  # split, id


@st.composite
def datasets_and_ranges(draw: st.DrawFn) -> tuple[Dataset, list[SplitRange]]:
    dataset = draw(datasets())
    ranges = []
    for split in draw(st.lists(st.sampled_from(dataset.splits), max_size=4)):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, split.num_examples)] * 2)))
        ranges.append(SplitRange(split=split, start=start, stop=stop))
    return dataset, ranges


def examples(instructions: Iterable[FileInstruction]) -> list[Example]:
    return [(i.split, i.first_id + k) for i in instructions for k in range(i.take)]


@pytest.mark.long
@given(datasets_and_ranges())
def test_the_rows_are_the_file_instructions(case: tuple[Dataset, list[SplitRange]]) -> None:
    dataset, ranges = case
    reads = reads_of(dataset, ranges)
    assert tuple(reads) == file_instructions(ranges)
    assert len(reads) == len(file_instructions(ranges))
    assert reads.num_examples == sum(piece.num_examples for piece in ranges)
    assert reads.take.min(initial=1) > 0
    of_parts = [len(file_instructions([piece])) for piece in ranges]
    assert reads.part.tolist() == [part for part, n in enumerate(of_parts) for _ in range(n)]


@pytest.mark.long
@given(datasets_and_ranges(), st.randoms(use_true_random=False))
def test_rows_are_selected_in_the_order_asked_for(
    case: tuple[Dataset, list[SplitRange]], random: object
) -> None:
    reads = reads_of(*case)
    rows = list(range(len(reads)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    whole = list(reads)
    assert list(reads.select(np.array(rows, np.int64))) == [whole[row] for row in rows]
    assert list(reads.select(slice(None, None, -1))) == whole[::-1]


@pytest.mark.long
@given(datasets_and_ranges())
def test_trimmed_rows_read_a_piece_of_what_they_read(
    case: tuple[Dataset, list[SplitRange]],
) -> None:
    reads = reads_of(*case)
    skip = reads.take // 3
    trimmed = reads.trimmed(skip, reads.take - 2 * skip)
    for before, after, by in zip(reads, trimmed, skip.tolist(), strict=True):
        ids = range(before.first_id, before.first_id + before.take)
        assert range(after.first_id, after.first_id + after.take) == ids[by : len(ids) - by]
        assert after.skip - before.skip == by


@pytest.mark.long
@given(datasets_and_ranges(), st.data())
def test_what_reads_a_stretch_is_that_slice_of_the_list(
    case: tuple[Dataset, list[SplitRange]], data: st.DataObject
) -> None:
    reads = reads_of(*case)
    start, stop = data.draw(st.tuples(*[st.integers(0, reads.num_examples)] * 2))
    part = reads.between(start, stop)
    assert examples(part) == examples(reads)[start:stop]
    assert part.take.min(initial=1) > 0


@pytest.mark.long
@given(datasets_and_ranges(), st.data())
def test_runs_read_the_same_in_the_order_of_the_files(
    case: tuple[Dataset, list[SplitRange]], data: st.DataObject
) -> None:
    whole = reads_of(*case)
    pieces = [whole.select(slice(0, 0))]
    for _ in range(data.draw(st.integers(0, 4))):
        start, stop = data.draw(st.tuples(*[st.integers(0, whole.num_examples)] * 2))
        pieces.append(whole.between(start, stop))
    reads = joined(pieces)
    runs = reads.runs()
    assert Counter(examples(runs)) == Counter(examples(reads))
    places = list(zip(runs.split.tolist(), runs.shard.tolist(), runs.skip.tolist(), strict=True))
    assert places == sorted(places)
    if len(set(examples(reads))) == reads.num_examples:  # none is read twice: runs are as long
        number = {  # as they can be: one a stretch of ids that follow each other in one file
            (split.name, shard): [(split.name, split.offsets[shard] + k) for k in range(length)]
            for split in whole.dataset.splits
            for shard, length in enumerate(split.shard_lengths)
        }
        read = set(examples(reads))
        stretches = [
            group
            for ids in number.values()
            for is_read, group in groupby(ids, lambda example: example in read)
            if is_read
        ]
        assert len(runs) == len(stretches)


@pytest.mark.long
@given(datasets_and_ranges())
def test_runs_leave_out_rows_that_read_nothing(case: tuple[Dataset, list[SplitRange]]) -> None:
    whole = reads_of(*case)
    take = whole.take * (np.arange(len(whole)) % 2)
    some = whole.trimmed(np.zeros_like(take), take)
    assert some.runs().take.min(initial=1) > 0
    assert Counter(examples(some.runs())) == Counter(examples(some))


@pytest.mark.long
@given(datasets_and_ranges())
def test_joined_rows_come_one_after_the_other(case: tuple[Dataset, list[SplitRange]]) -> None:
    dataset, ranges = case
    if ranges:
        several = [reads_of(dataset, [piece]) for piece in ranges]
        assert list(joined(several)) == list(reads_of(dataset, ranges))


def test_rows_of_two_datasets_are_not_joined() -> None:
    with pytest.raises(ValueError, match="different files"):
        joined([named_reads(("a", 0, 1)), named_reads(("a", 0, 1))])


TRAIN = Split(
    name="train",
    shard_lengths=(3, 2, 4),
    files=(ShardFiles(pattern="sub/d-train-\0", num_shards=3),),
)
TOY = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)), TRAIN))
READS = reads_of(TOY, [SplitRange(split=TRAIN, start=1, stop=9)])
ROWS = ("d-train-00000", 1, 2), ("d-train-00001", 0, 2), ("d-train-00002", 0, 4)
NAMED = named_reads(*ROWS, lengths=(3, 2, 4))


@pytest.mark.parametrize("reads", [READS, NAMED], ids=["of a dataset", "by name"])
def test_file_names_are_made_row_by_row(reads: Reads) -> None:
    assert reads.filenames() == ["d-train-00000", "d-train-00001", "d-train-00002"]
    assert reads.filenames(1, 2) == ["d-train-00001"]
    assert reads.filenames(2, 9) == ["d-train-00002"]
    assert [reads.filename(row) for row in range(3)] == reads.filenames()
    assert not reads.names_repeat
    assert repr(reads) == "<3 file instructions, 8 examples>"


@pytest.mark.parametrize("count", [1, 5, 999, 3000])
@pytest.mark.parametrize("step", [1, 7, -1])
def test_many_names_are_those_of_one_after_the_other(count: int, step: int) -> None:
    files = tuple(
        ShardFiles(data_dir=f"/{day}", pattern="d-\0", num_shards=3000) for day in ("mon", "tue")
    )
    split = Split(name="long", shard_lengths=(1,) * 6000, files=files)
    dataset = Dataset(name="d", splits=(TRAIN, split))
    shards = 10 + np.arange(count) * abs(step) % 5900
    shards = shards[::-1] if step < 0 else shards
    names = filenames_of(dataset, np.ones(count, np.int64), shards)
    assert names == [f"d-{shard % 3000:05d}" for shard in shards.tolist()]
    # Two files of one name are told apart by their place; a split that is not read has no say.
    both = reads_of(dataset, [SplitRange(split=split, start=0, stop=2)])
    assert both.names_repeat
    assert not reads_of(dataset, [SplitRange(split=TRAIN, start=0, stop=2)]).names_repeat


def test_values_of_few_rows_of_many_shards() -> None:
    split = Split(name="train", shard_lengths=tuple(range(100)))
    every = reads_of(
        Dataset(name="d", splits=(split,)), [SplitRange(split=split, start=0, stop=4950)]
    )
    few = every.select(np.array([40, 2]))
    # Row 40 is shard 41, since shard 0 is empty: 41 examples after 41 * 40 / 2.
    assert few.examples_in_shard.tolist() == [41, 3]
    assert few.first.tolist() == [820, 3]
    assert every.first.tolist() == [n * (n - 1) // 2 for n in range(1, 100)]


def test_a_range_of_a_split_of_another_dataset_is_refused() -> None:
    split = Split(name="train", shard_lengths=(1,))
    other = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)),))
    with pytest.raises(KeyError):
        reads_of(other, [SplitRange(split=split, start=0, stop=1)])
