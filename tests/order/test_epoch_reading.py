"""An epoch of TFDS's reader: a host's files, the seeds of its shuffles, and what is read when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.order.epoch_reading import EpochReading, EpochSeeds, repetitions_listed
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfdata.interleave import Interleave
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from tests.tfdata.shuffle_oracles import interleave_by_hand, iterator_seeds

# What a host reads.


# The seeds of an epoch: those of the iterator that TensorFlow makes for it.

BUFFER: dict[str, Any] = {"buffer": 9, "buffer_seed": 5}
KERAS: dict[str, Any] = {"loop": "keras-fit", "pass_index": 2}
BY_FILES: dict[str, Any] = {"host": Host(index=0, count=2), "host_by": "files"}


def seeds(*, partial_last_batch: bool = False, **settings: Any) -> EpochSeeds:
    return EpochSeeds(settings=ReadSettings(**settings), partial_last_batch=partial_last_batch)


# How many iterators a pass makes: one an epoch, one more where a repeat that is not fused with the
# shuffle asks for what follows the last epoch, and one more that Keras makes and drops.
@pytest.mark.parametrize(
    ("settings", "epoch", "of_files", "of_buffer"),
    [
        ({}, 0, 0, 0),
        ({"epochs": 3}, 2, 2, 2),
        ({"pass_index": 4}, 0, 4, 4),
        ({"epochs": 3, "pass_index": 2}, 1, 9, 7),  # 3 + 1 iterators a pass; the buffer's is fused
        (KERAS, 0, 4, 4),  # 2 a pass
        # Of what an InputContext reads Keras does not know the length.
        ({**KERAS, **BY_FILES}, 0, 2, 2),
        ({"epochs": 3, "repeat_files": True}, 0, 0, 0),
    ],
)
def test_shuffles_take_the_seeds_of_the_iterator_of_their_epoch(
    settings: dict[str, Any], epoch: int, of_files: int, of_buffer: int
) -> None:
    found = seeds(shuffle_seed=7, **settings).of_files(epoch)
    assert found == iterator_seeds(7, None, True, of_files)
    if settings.get("repeat_files"):
        epoch = 0
    assert seeds(**BUFFER, **settings).of_buffer(epoch) == iterator_seeds(5, None, True, of_buffer)


def test_seeds_under_a_buffer_fixed_ones_and_those_that_are_drawn() -> None:
    under = seeds(shuffle_seed=7, epochs=3, pass_index=2, **BUFFER)
    assert under.of_files(1) == iterator_seeds(7, None, True, 7)
    files = seeds(shuffle_seed=7, reshuffle=False, epochs=3, pass_index=2)
    # TensorFlow's default, and the seed.
    assert {files.of_files(epoch) for epoch in range(3)} == {KernelSeeds(seed=87654321, seed2=7)}
    buffer = seeds(**BUFFER, buffer_reshuffle=False, epochs=3)
    assert buffer.of_buffer(0) == buffer.of_buffer(2) == KernelSeeds(seed=87654321, seed2=5)
    drawn: dict[str, Any] = {"global_seed": 1, "buffer": 9, "deterministic": True}
    both = seeds(shuffle_files=True, **drawn)
    assert both.of_files(0) == iterator_seeds(None, 1, True, 0, op_index=0)
    assert both.of_buffer(0) == iterator_seeds(None, 1, True, 0, op_index=1)
    # A file shuffle with a seed of its own draws none.
    for one in (seeds(**drawn), seeds(shuffle_seed=7, **drawn)):
        assert one.of_buffer(0) == iterator_seeds(None, 1, True, 0, op_index=0)


# One reading of the files.


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
def test_a_host_keeps_every_so_manieth_example_and_each_is_found(case: Files) -> None:
    reading, expected = case.reading(), case.by_hand()
    every, codes = np.arange(len(expected)), [100 * row + offset for row, offset in expected]
    assert reading.num_examples == len(expected)
    rows, offsets = reading.locate(every)
    assert list(zip(rows.tolist(), offsets.tolist(), strict=True)) == expected
    assert reading.codes_at(every).tolist() == codes
    of_all = min(len(expected) * reading.stride, reading.interleave.num_examples)
    assert reading.state(len(expected)) == reading.interleave.state(of_all)
    for start, stop in ((0, len(expected)), (len(expected) // 3, len(expected) // 2), (3, 3)):
        assert reading.codes(start, min(stop, len(expected))).tolist() == codes[start:stop]
    asked = [(row, offset) for row, length in enumerate(case.take) for offset in range(length)]
    rows, offsets = (np.array(x) for x in zip(*asked, strict=True))
    query, positions = reading.positions(rows, offsets)
    assert sorted(zip(query.tolist(), positions.tolist(), strict=True)) == sorted(
        (asked.index(example), position) for position, example in enumerate(expected)
    )


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
    listed, longer = (
        interleave_by_hand(take * times, cycle, block)[:num_examples]
        for times in (count, count + 9)
    )
    assert listed == longer
    assert len(listed) == (num_examples if sum(take) else 0)
