"""Take, skip, shard and what hands out all: which elements, and how far the input is read."""

from __future__ import annotations

import pytest

from shardctl.iteration.batch import Batch, Unbatch
from shardctl.iteration.iteration import EVERYTHING, INFINITE, UNKNOWN, Iteration, Node, Source
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.iteration.elements import all_of, check_lookups


class Watched(Source):
    """A source that keeps its iterators."""

    def __init__(self, length: int) -> None:
        super().__init__(range(length))
        self.made: list[Iteration] = []

    def iterate(self) -> Iteration:  # type: ignore[override]
        self.made.append(super().iterate())
        return self.made[-1]


def batches() -> Node:
    return Repeat(Batch(Source(range(7)), 3), 2)


@pytest.mark.parametrize(
    ("first", "stride", "limit", "expected"),
    [
        (0, 1, None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (0, 1, 3, [0, 1, 2]),
        (0, 1, 30, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (4, 1, None, [4, 5, 6, 7, 8, 9]),
        (12, 1, None, []),
        (1, 4, None, [1, 5, 9]),
        (3, 4, None, [3, 7]),
        (15, 20, None, []),
    ],
)
def test_elements(first: int, stride: int, limit: int | None, expected: list[int]) -> None:
    node = Strided(Source(range(10)), first=first, stride=stride, limit=limit)
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    assert check_lookups(iteration) == [[code] for code in expected]
    assert node.cardinality == len(expected)


@pytest.mark.parametrize(("first", "stride", "limit"), [(1, 1, None), (0, 1, 4), (1, 2, None)])
def test_elements_that_differ_in_size(first: int, stride: int, limit: int | None) -> None:
    iteration = Strided(batches(), first=first, stride=stride, limit=limit).iterate()
    iteration.pull(EVERYTHING)
    every = [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2], [3, 4, 5], [6]]
    assert check_lookups(iteration) == every[first::stride][:limit]


# take(m) reads m; skip reads what it skips with the first; a shard's first costs index + 1, its
# end the rest (TFDATA F1).
@pytest.mark.parametrize(
    ("node", "read"),
    [
        ({"limit": 3}, [1, 2, 3, 3]),
        ({"first": 2}, [3, 4, 5, 6]),
        ({"first": 1, "stride": 3}, [2, 5, 8, 10]),
        ({"first": 3, "stride": 4}, [4, 8, 10, 10]),
    ],
)
def test_how_far_the_input_is_read(node: dict[str, int], read: list[int]) -> None:
    source = Watched(10)
    iteration = Strided(source, **node).iterate()  # type: ignore[arg-type]
    found = []
    for _ in range(4):
        iteration.pull(1)
        found.append(source.made[0].pulled)
    assert found == read


def test_taking_nothing_makes_no_iterator_below() -> None:
    source = Watched(10)
    assert all_of(Strided(source, limit=0)) == []
    assert not source.made


def test_taking_all_there_is_does_not_see_the_end() -> None:
    source = Watched(5)
    iteration = Strided(source, limit=5).iterate()
    assert (iteration.pull(9), iteration.ended) == (5, True)
    assert not source.made[0].ended


# As ds.cardinality() of TensorFlow 2.21 says it.
def test_cardinality_of_what_has_no_end_or_is_unknown() -> None:
    endless = Repeat(Source(range(3)), None)
    unknown = Unbatch(Batch(Source(range(10)), 2))
    assert Strided(endless, limit=4).cardinality == 4
    assert Strided(endless, first=1, stride=2).cardinality == INFINITE
    assert Strided(endless, first=1, limit=0).cardinality == INFINITE  # skip(-1)
    assert Strided(unknown, limit=3).cardinality == UNKNOWN
    assert Strided(unknown, first=1, limit=0).cardinality == UNKNOWN
    assert Strided(endless, limit=4).is_infinite is False


@pytest.mark.parametrize(("reads_ahead", "is_uncertain"), [(0, False), (3, False), (4, True)])
def test_what_is_cut_marks_what_threads_may_have_read(reads_ahead: int, is_uncertain: bool) -> None:
    # 6 of 9 are taken; with 4 read ahead the second epoch of 9 begins, or not.
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(1)")
    below = Repeat(Strided(Shuffle(Source(range(9)), 1, generator)), 2)
    Strided(Strided(below, reads_ahead=reads_ahead), limit=6).iterate().pull(6)
    assert generator.is_uncertain is is_uncertain


def test_threads_that_were_never_asked_have_read_nothing() -> None:
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(1)")
    below = Repeat(Strided(Shuffle(Source(range(9)), 1, generator)), 2)
    Strided(below, reads_ahead=None).iterate().abandon()
    assert not generator.is_uncertain
    Strided(below, reads_ahead=None, warm=True).iterate().abandon()
    assert generator.is_uncertain
