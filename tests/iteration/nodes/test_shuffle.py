"""Shuffles: which seeds each epoch gets, how far the input is read, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration import shuffle as module
from shardctl.iteration.batch import Batch
from shardctl.iteration.filtered import Filter
from shardctl.iteration.iteration import EVERYTHING, Iteration, Node, Source
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator, shuffle_kernel_seeds
from tests.iteration.elements import all_of, check_lookups
from tests.tfdata.shuffle_oracles import iterator_seeds


class Watched(Source):
    """A source that keeps its iterators."""

    def __init__(self, length: int) -> None:
        super().__init__(range(length))
        self.made: list[Iteration] = []

    def iterate(self) -> Iteration:  # type: ignore[override]
        self.made.append(super().iterate())
        return self.made[-1]

    @property
    def num_read(self) -> int:
        return sum(iteration.pulled for iteration in self.made)


def shuffle_of(
    child: Node, buffer: int, count: int | None = 1, *, reshuffle: bool = True
) -> Shuffle:
    kernel = shuffle_kernel_seeds(7, None)
    return Shuffle(
        child, buffer, SeedGenerator(kernel, reshuffle, stage=f"shuffle({buffer})"), count
    )


def permutation(length: int, buffer: int, pair: int) -> list[int]:
    seeds = iterator_seeds(7, None, True, pair)
    return list(shuffle_permutation(length, buffer, seeds).tolist())


@pytest.mark.parametrize("buffer", [1, 3, 8, 9, 100])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_epoch_is_shuffled_with_a_pair_of_its_own(buffer: int, count: int) -> None:
    node = shuffle_of(Source(range(8)), buffer, count)
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    expected = [[code] for epoch in range(count) for code in permutation(8, buffer, epoch)]
    assert check_lookups(iteration) == expected
    assert node.generator.num_taken == count


# With epochs of 8, 9 and 9 elements TensorFlow 2.21 handed out another order than a buffer as large
# as the first does.
def test_a_whole_shuffle_in_one_op_with_its_repeat_needs_epochs_of_one_length() -> None:
    passing = Filter(Source(range(8)), lambda codes: codes > 2)
    shuffle_of(passing, WHOLE_DATASET)
    shuffle_of(passing, 9, count=3)
    with pytest.raises(UnpredictableOrderError, match="whose passes may differ in length"):
        shuffle_of(passing, WHOLE_DATASET, count=3)


def test_iterators_take_their_pair_when_they_are_made() -> None:
    below = shuffle_of(Source(range(4)), 9)
    node = shuffle_of(below, 9)
    iteration = node.iterate()
    assert (node.generator.num_taken, below.generator.num_taken) == (1, 0)
    iteration.pull(1)
    assert below.generator.num_taken == 1


# One is read for each that is handed out, from a full buffer on (TFDATA B7).
@pytest.mark.parametrize(
    ("buffer", "read"), [(1, [1, 2, 3, 4, 5]), (3, [3, 4, 5, 5, 5]), (9, [5, 5, 5, 5, 5])]
)
def test_how_far_the_input_is_read(buffer: int, read: list[int]) -> None:
    source = Watched(5)
    iteration = shuffle_of(source, buffer).iterate()
    found = []
    for _ in range(5):
        iteration.pull(1)
        found.append(source.num_read)
    assert found == read


# Counted in TensorFlow 2.21, by a map that counts what it is given.
@pytest.mark.parametrize(
    ("length", "buffer", "count", "read"),
    [
        (7, WHOLE_DATASET, 2, [7, 8, 9, 10, 11, 12, 13, 14, 14, 14, 14, 14, 14, 14]),
        (1, WHOLE_DATASET, None, [1, 2, 3, 4, 5, 6]),
        (7, WHOLE_DATASET, None, [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]),
        (2, 7, 5, [7, 7, 7, 9, 9, 10, 10, 10, 10, 10]),
        (3, 9, None, [9, 10, 10, 10, 13, 13, 13, 16]),
        (3, 100, None, [10, 10, 10, 10, 13, 13, 13, 16, 16, 16]),
    ],
)
def test_epochs_are_read_ahead_as_tensorflow_does(
    length: int, buffer: int, count: int | None, read: list[int]
) -> None:
    source = Watched(length)
    iteration = shuffle_of(source, buffer, count).iterate()
    found = []
    for _ in read:
        iteration.pull(1)
        found.append(source.num_read)
    assert found == read


def test_the_whole_dataset_is_a_buffer_of_its_size() -> None:
    node = shuffle_of(Source(range(8)), WHOLE_DATASET, 2)
    assert all_of(node) == [[code] for epoch in (0, 1) for code in permutation(8, 8, epoch)]
    with pytest.raises(UsageError, match="never fills"):
        shuffle_of(Repeat(Source(range(8)), None), WHOLE_DATASET)


def test_what_is_handed_out_does_not_change_as_more_is_read() -> None:
    iteration = shuffle_of(Source(range(8)), 3).iterate()
    seen = []
    for _ in range(8):
        iteration.pull(1)
        seen.append(iteration.examples(np.arange(iteration.pulled)).tolist())
    assert [seen[-1][: len(one)] for one in seen] == seen


@pytest.mark.parametrize("max_kept", [1, 40, 1 << 24])
def test_elements_of_any_size_are_shuffled(max_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_KEPT", max_kept)
    batches = Repeat(Batch(Source(range(7)), 3), 3)
    below = [[0, 1, 2], [3, 4, 5], [6]] * 3
    iteration = shuffle_of(batches, 4).iterate()
    iteration.pull(EVERYTHING)
    assert check_lookups(iteration) == [below[index] for index in permutation(9, 4, 0)]


def test_no_epochs_of_nothing() -> None:
    assert all_of(shuffle_of(Source(()), 3, 4)) == []
    assert all_of(shuffle_of(Source(()), 3, None)) == []


def test_without_reshuffling_all_iterators_are_alike() -> None:
    node = shuffle_of(Source(range(8)), 3, 2, reshuffle=False)
    assert node.is_fixed
    once = shuffle_permutation(8, 3, KernelSeeds(seed=87654321, seed2=7)).tolist()
    assert all_of(node) == [[code] for code in once * 2]


def test_an_unknown_seed_is_refused_where_the_order_shows() -> None:
    generator = SeedGenerator(None, True, stage="shuffle(3)")
    iteration = Shuffle(Source(range(5)), 3, generator).iterate()
    iteration.check()
    assert iteration.pull(9) == 5
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(3\)"):
        iteration.check()
    # Whatever the seeds are, a buffer of one changes no order.
    alone = Shuffle(Source(range(5)), 1, generator).iterate()
    alone.pull(9)
    alone.check()
    assert check_lookups(alone) == [[0], [1], [2], [3], [4]]
