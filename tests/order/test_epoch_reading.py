"""One reading of the files: codes at positions, and the positions of an example, there and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardctl.order.epoch_reading import EpochReading, repetitions_listed
from shardctl.tfdata.interleave import Interleave
from tests.oracles import interleave_by_hand


@dataclass(frozen=True, kw_only=True)
class Files:
    """What files yield, the order in which they are opened, and which examples a host keeps."""

    take: tuple[int, ...]
    opened: tuple[int, ...]
    cycle: int
    block: int
    stride: int
    phase: int
    limit: int | None

    def reading(self) -> EpochReading:
        """Return the reading; row r reads the codes 100 r, 100 r + 1, ..."""
        opened = np.array(self.opened, np.int64)
        take = np.array(self.take, np.int64)[opened]
        return EpochReading(
            rows=opened,
            interleave=Interleave(take, cycle_length=self.cycle, block_length=self.block),
            row_codes=100 * np.arange(len(self.take)),
            stride=self.stride,
            phase=self.phase,
            limit=self.limit,
        )

    def by_hand(self) -> list[tuple[int, int]]:
        """Return (row, offset) of each example that the host keeps."""
        lengths = [self.take[row] for row in self.opened]
        order = interleave_by_hand(lengths, self.cycle, self.block)
        kept = [(self.opened[shard], offset) for shard, offset in order]
        return kept[self.phase :: self.stride][: self.limit]


@st.composite
def files(draw: st.DrawFn) -> Files:
    take = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=8)))
    repetitions = [draw(st.permutations(range(len(take)))) for _ in range(draw(st.integers(1, 3)))]
    stride = draw(st.integers(1, 4) | st.integers(30, 110))
    return Files(
        take=take,
        opened=tuple(row for rows in repetitions for row in rows),
        cycle=draw(st.integers(1, 5)),
        block=draw(st.integers(1, 4)),
        stride=stride,
        phase=draw(st.integers(0, stride - 1)),
        limit=draw(st.none() | st.integers(0, 30)),
    )


@given(files())
def test_a_host_keeps_every_so_manieth_example_up_to_the_cut(case: Files) -> None:
    reading, expected = case.reading(), case.by_hand()
    every = np.arange(len(expected))
    assert reading.num_examples == len(expected)
    rows, offsets = reading.locate(every)
    assert list(zip(rows.tolist(), offsets.tolist(), strict=True)) == expected
    assert reading.codes_at(every).tolist() == [100 * row + offset for row, offset in expected]
    for start, stop in ((0, len(expected)), (len(expected) // 3, len(expected) // 2), (3, 3)):
        found = reading.codes(start, min(stop, len(expected)))
        assert found.tolist() == [100 * row + offset for row, offset in expected[start:stop]]


@given(files())
def test_an_example_is_found_each_time_it_is_read_and_kept(case: Files) -> None:
    reading, expected = case.reading(), case.by_hand()
    asked = [(row, offset) for row, length in enumerate(case.take) for offset in range(length)]
    rows, offsets = (np.array(x) for x in zip(*asked, strict=True))
    query, positions = reading.positions(rows, offsets)
    assert sorted(zip(query.tolist(), positions.tolist(), strict=True)) == sorted(
        (asked.index(example), position) for position, example in enumerate(expected)
    )


def test_a_block_is_named_by_its_slot_and_the_offset_in_the_file() -> None:
    case = Files(take=(3, 2, 4), opened=(0, 1, 2), cycle=2, block=2, stride=1, phase=0, limit=None)
    slots, offsets = case.reading().blocks(np.arange(9))
    # 00 11 0 22 22: the second file ends with a visit that yields nothing, after the first has.
    assert slots.tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert offsets.tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 3]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_so_many_lists_of_files_read_as_an_endless_one_so_far(
    take: list[int], num_examples: int, cycle: int, block: int
) -> None:
    count = repetitions_listed(np.array(take), num_examples, cycle_length=cycle)
    listed = interleave_by_hand(take * count, cycle, block)[:num_examples]
    longer = interleave_by_hand(take * (count + 9), cycle, block)[:num_examples]
    assert listed == longer
    assert len(listed) == (num_examples if sum(take) else 0)
