"""File instructions as columns: the same as those made one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.file_instruction import SplitRange, file_instructions
from shardctl.core.instructions.reads import read_table
from tests.strategies import datasets


@st.composite
def datasets_and_ranges(draw: st.DrawFn) -> tuple[Dataset, list[SplitRange]]:
    dataset = draw(datasets())
    ranges = []
    for split in draw(st.lists(st.sampled_from(dataset.splits), max_size=4)):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, split.num_examples)] * 2)))
        ranges.append(SplitRange(split=split, start=start, stop=stop))
    return dataset, ranges


@given(datasets_and_ranges())
def test_the_rows_are_the_file_instructions(case: tuple[Dataset, list[SplitRange]]) -> None:
    dataset, ranges = case
    table = read_table(dataset, ranges)
    assert table.file_instructions() == file_instructions(ranges)
    assert len(table) == len(file_instructions(ranges))
    assert table.num_examples == sum(piece.num_examples for piece in ranges)
    assert table.take.min(initial=1) > 0
    of_parts = [len(file_instructions([piece])) for piece in ranges]
    assert table.part.tolist() == [part for part, n in enumerate(of_parts) for _ in range(n)]


@given(datasets_and_ranges(), st.randoms(use_true_random=False))
def test_rows_are_selected_in_the_order_asked_for(
    case: tuple[Dataset, list[SplitRange]], random: object
) -> None:
    table = read_table(*case)
    rows = list(range(len(table)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    whole = table.file_instructions()
    assert table.select(np.array(rows, np.int64)).file_instructions() == tuple(
        whole[row] for row in rows
    )
    assert table.select(slice(None, None, -1)).file_instructions() == whole[::-1]


@given(datasets_and_ranges())
def test_trimmed_rows_read_a_piece_of_what_they_read(
    case: tuple[Dataset, list[SplitRange]],
) -> None:
    table = read_table(*case)
    skip = table.take // 3
    trimmed = table.trimmed(skip, table.take - 2 * skip)
    for before, after, by in zip(
        table.file_instructions(), trimmed.file_instructions(), skip.tolist(), strict=True
    ):
        ids = range(before.first_id, before.first_id + before.take)
        assert range(after.first_id, after.first_id + after.take) == ids[by : len(ids) - by]
        assert after.skip - before.skip == by


def test_a_range_of_a_split_of_another_dataset_is_refused() -> None:
    from shardctl.core.dataset.dataset import Split

    split = Split(name="train", shard_lengths=(1,))
    other = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)),))
    with pytest.raises(KeyError):
        read_table(other, [SplitRange(split=split, start=0, stop=1)])
