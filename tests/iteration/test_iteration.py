"""What all iterations share: examples counted and found where elements differ, reading ahead."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.iteration import iteration as module
from shardctl.iteration.batch import Batch
from shardctl.iteration.cache import Cache
from shardctl.iteration.iteration import Iteration, Source, lasting_below, read_ahead
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.iteration.elements import check_lookups

KERNEL = KernelSeeds(seed=1, seed2=2)


def generator(*, reshuffle: bool = True) -> SeedGenerator:
    return SeedGenerator(KERNEL, reshuffle, stage="shuffle(3)")


def partial_batches() -> Iteration:
    """Batches of 3, 3, 2 examples, twice, every second of them."""
    iteration = Strided(Repeat(Batch(Source(range(8)), 3), 2), stride=2).iterate()
    iteration.pull(9)
    return iteration


def test_pulling_counts_and_ends_once_fewer_come() -> None:
    iteration = Source(range(5)).iterate()
    assert (iteration.pull(5), iteration.ended) == (5, False)
    assert (iteration.pull(1), iteration.ended, iteration.pulled) == (0, True, 5)
    assert iteration.pull(3) == 0


@pytest.mark.parametrize("piece", [1, 2, 100])
def test_examples_are_found_where_elements_differ(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    assert check_lookups(partial_batches()) == [[0, 1, 2], [6, 7], [3, 4, 5]]


def test_counts_go_on_as_more_is_pulled() -> None:
    iteration = Strided(Repeat(Batch(Source(range(8)), 3), 2), stride=2).iterate()
    found = []
    for _ in range(4):
        found.append(iteration.num_examples)
        iteration.pull(1)
    assert found == [0, 3, 5, 8]


def test_what_outlives_an_iterator_is_found_once() -> None:
    below = Shuffle(Source(range(5)), 3, generator())
    cache = Cache(below)
    assert lasting_below(Repeat(cache, 2)) == [cache, below.generator]


def test_nothing_is_marked_where_all_iterators_are_alike() -> None:
    node = Shuffle(Source(range(5)), 3, generator(reshuffle=False))
    read_ahead(node, node.iterate(), None)
    assert node.is_fixed
    assert not node.generator.is_uncertain


@pytest.mark.parametrize(("count", "is_marked"), [(4, False), (5, False), (6, True), (None, True)])
def test_reading_ahead_marks_what_it_would_change(count: int | None, is_marked: bool) -> None:
    # Of 5 + 5 elements the second epoch is begun by the sixth.
    shuffle = Shuffle(Source(range(5)), 1, generator())
    node = Repeat(Strided(shuffle), 2)
    read_ahead(node, node.iterate(), count)
    assert shuffle.generator.is_uncertain is is_marked


def test_reading_ahead_without_end_marks_all() -> None:
    shuffle = Shuffle(Source(range(5)), 1, generator())
    node = Repeat(Strided(shuffle), None)
    read_ahead(node, node.iterate(), None)
    assert shuffle.generator.is_uncertain


def test_places_of_an_example_that_an_element_holds_twice() -> None:
    iteration = Batch(Source((4, 4, 4)), 2).iterate()
    iteration.pull(2)
    query, places = iteration.places_of(np.array([4]))
    assert (query.tolist(), places.tolist()) == ([0, 0, 0], [0, 1, 2])
