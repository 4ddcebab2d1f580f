"""Batches and their rows, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.iteration.batch import Batch, Unbatch
from shardctl.iteration.iteration import EVERYTHING, UNKNOWN, Axis, Node, Source
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.iteration.elements import all_of, check_lookups

Rows = list[list[int]]


def source(length: int) -> Source:
    return Source(range(length))


def checked(node: Node) -> Rows:
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    return check_lookups(iteration)


def test_the_last_batch_is_smaller_or_dropped() -> None:
    assert checked(Batch(source(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert checked(Batch(source(7), 3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert checked(Batch(source(2), 3)) == [[0, 1]]
    assert checked(Batch(source(2), 3, drop_remainder=True)) == []
    assert checked(Batch(source(6), 3)) == [[0, 1, 2], [3, 4, 5]]


def test_batches_of_batches() -> None:
    inner = Batch(source(7), 2)
    assert checked(Batch(inner, 3)) == [[0, 1, 2, 3, 4, 5], [6]]
    assert checked(Batch(Repeat(Batch(source(3), 2), 3), 2)) == [
        [0, 1, 2],
        [0, 1, 2],
        [0, 1, 2],
    ]


def test_a_smaller_last_batch_is_not_followed_by_a_further_look_at_the_input() -> None:
    iteration = Batch(source(7), 3).iterate()
    assert (iteration.pull(3), iteration.ended) == (3, False)
    assert (iteration.pull(1), iteration.ended) == (0, True)


def test_the_width_is_that_of_all_batches_pulled_so_far() -> None:
    iteration = Batch(source(7), 3).iterate()
    widths = []
    for _ in range(3):
        iteration.pull(1)
        widths.append(iteration.width)
    assert widths == [3, 3, None]
    assert iteration.widths(np.arange(3)).tolist() == [3, 3, 1]


def test_unbatched_rows_are_those_of_the_batches() -> None:
    assert checked(Unbatch(Batch(source(7), 3))) == [[code] for code in range(7)]
    nested = Batch(Batch(source(8), 2, drop_remainder=True), 3)
    assert checked(Unbatch(nested)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert checked(Unbatch(Strided(Batch(source(7), 3), first=1))) == [[3], [4], [5], [6]]


def test_unbatching_reads_no_batch_too_early() -> None:
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(2)")
    batches = Batch(source(5), 2)
    node = Unbatch(Repeat(Strided(Shuffle(batches, 2, generator)), None))
    iteration = node.iterate()
    taken = []
    for _ in range(11):
        iteration.pull(1)
        taken.append(generator.num_taken)
    # An epoch has 5 rows, in whatever order its batches come.
    assert taken == [1] * 5 + [2] * 5 + [3]


def test_what_cannot_be_unbatched_is_refused() -> None:
    with pytest.raises(UsageError, match="no batches"):
        Unbatch(source(5))
    with pytest.raises(UsageError, match="differ in size"):
        Unbatch(Batch(Batch(source(7), 2), 3))


def test_shape_and_cardinality() -> None:
    batch = Batch(source(7), 3)
    dropped = Batch(source(7), 3, drop_remainder=True)
    assert batch.shape == (Axis(3, False),)
    assert Batch(dropped, 2).shape == (Axis(2, False), Axis(3, True))
    assert (batch.cardinality, dropped.cardinality) == (3, 2)
    assert Unbatch(batch).cardinality == UNKNOWN
    assert Unbatch(dropped).cardinality == 6
    endless = Batch(Repeat(source(7), None), 3)
    assert (endless.cardinality, Unbatch(endless).cardinality) == (-1, -1)
    assert all_of(Strided(endless, first=2, limit=1)) == [[6, 0, 1]]
