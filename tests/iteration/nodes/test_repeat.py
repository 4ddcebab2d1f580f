"""Repeats that are not fused, and concatenations: how many iterators they make, and when."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.iteration import repeat as module
from shardctl.iteration.batch import Batch, Unbatch
from shardctl.iteration.iteration import EVERYTHING, INFINITE, UNKNOWN, Source
from shardctl.iteration.repeat import Concatenate, Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.iteration.elements import all_of, check_lookups


def shuffled(length: int = 4) -> Shuffle:
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(9)")
    return Shuffle(Source(range(length)), 9, generator)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_finite_repeat_makes_an_iterator_more_than_it_has_epochs(count: int) -> None:
    shuffle = shuffled()
    iteration = Repeat(shuffle, count).iterate()
    assert iteration.pull(4 * count) == 4 * count
    assert shuffle.generator.num_taken == count  # nobody has asked for the end
    iteration.pull(1)
    assert shuffle.generator.num_taken == count + 1


def test_epochs_are_looked_up() -> None:
    iteration = Repeat(Batch(shuffled(), 3), 3).iterate()
    iteration.pull(EVERYTHING)
    elements = check_lookups(iteration)
    assert [len(element) for element in elements] == [3, 1, 3, 1, 3, 1]
    assert sorted(elements[0] + elements[1]) == [0, 1, 2, 3]


@pytest.mark.parametrize("piece", [1, 2, 5, 100])
def test_epochs_that_are_alike_are_looked_up(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    iteration = Repeat(Batch(Source(range(5)), 2), 3).iterate()
    iteration.pull(EVERYTHING)
    assert check_lookups(iteration) == [[0, 1], [2, 3], [4]] * 3


def test_without_a_count_an_empty_epoch_is_the_end() -> None:
    assert all_of(Repeat(Source(()), None)) == []
    assert all_of(Repeat(shuffled(0), None)) == []
    assert Repeat(shuffled(), None).iterate().pull(1000) == 1000


def test_a_partial_epoch_of_what_is_alike() -> None:
    iteration = Repeat(Source(range(5)), None).iterate()
    iteration.pull(3)
    assert check_lookups(iteration) == [[0], [1], [2]]
    iteration.pull(4)
    assert check_lookups(iteration) == [[0], [1], [2], [3], [4], [0], [1]]


def test_cardinality_of_repeats() -> None:
    unknown = Unbatch(Batch(Source(range(10)), 2))
    source = Source(range(3))
    assert Repeat(source, 4).cardinality == 12
    assert Repeat(source, None).cardinality == INFINITE
    assert Repeat(Source(()), None).cardinality == 0
    assert Repeat(unknown, 2).cardinality == UNKNOWN
    assert Repeat(unknown, None).cardinality == INFINITE
    assert not Repeat(Source(()), None).is_infinite


def test_the_second_input_is_begun_when_the_first_has_ended() -> None:
    second = shuffled()
    iteration = Concatenate(Source(range(3)), second).iterate()
    iteration.pull(3)
    assert second.generator.num_taken == 0
    iteration.pull(1)
    assert second.generator.num_taken == 1
    iteration.pull(EVERYTHING)
    assert [code for [code] in check_lookups(iteration)[:3]] == [0, 1, 2]
    assert iteration.pulled == 7


def test_concatenated_batches_of_two_sizes() -> None:
    node = Concatenate(Batch(Source(range(5)), 2), Batch(Source(range(3)), 3))
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    assert check_lookups(iteration) == [[0, 1], [2, 3], [4], [0, 1, 2]]
    assert (node.shape[0].size, node.shape[0].is_exact) == (3, False)
    rows = Unbatch(node).iterate()
    assert (rows.pull(6), rows.examples(np.array([5])).tolist()) == (6, [0])


def test_cardinality_of_concatenations() -> None:
    source, endless = Source(range(3)), Repeat(Source(range(3)), None)
    unknown = Unbatch(Batch(Source(range(10)), 2))
    assert Concatenate(source, source).cardinality == 6
    assert Concatenate(unknown, source).cardinality == UNKNOWN
    assert Concatenate(unknown, endless).cardinality == INFINITE
    assert Concatenate(endless, unknown).is_infinite


def test_batches_and_examples_are_not_concatenated() -> None:
    with pytest.raises(UsageError, match="batch both, or none"):
        Concatenate(Source(range(3)), Batch(Source(range(3)), 2))


def test_what_follows_an_unread_iterator_is_not_touched() -> None:
    shuffle = shuffled()
    Repeat(Strided(shuffle, reads_ahead=None), 2).iterate().abandon()
    assert not shuffle.generator.is_uncertain
