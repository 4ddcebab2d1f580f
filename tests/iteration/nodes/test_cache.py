"""Caches: when they are filled, and what later iterators repeat."""

from __future__ import annotations

import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.batch import Batch, Unbatch
from shardctl.iteration.cache import Asserted, Cache
from shardctl.iteration.filtered import Filter
from shardctl.iteration.iteration import EVERYTHING, INFINITE, UNKNOWN, Source
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.iteration.elements import all_of, check_lookups


def shuffled() -> Shuffle:
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(9)")
    return Shuffle(Source(range(6)), 9, generator)


def test_the_first_whole_pass_is_repeated() -> None:
    shuffle = shuffled()
    cache = Cache(shuffle)
    first = all_of(cache)
    assert [all_of(cache) for _ in range(3)] == [first] * 3
    assert shuffle.generator.num_taken == 1  # no iterator is made below a full cache


def test_a_partial_pass_is_not_kept() -> None:
    shuffle = shuffled()
    cache = Cache(shuffle)
    cache.iterate().pull(5)
    assert (cache.state, shuffle.generator.num_taken) == (0, 1)
    second = all_of(cache)
    assert all_of(cache) == second


# tensorflow/core/kernels/data/cache_dataset_ops.cc: "its size matches the expected input
# cardinality"; where that is unknown it must see the end.
def test_it_is_full_with_as_many_as_tensorflow_knows_of() -> None:
    cache = Cache(shuffled())
    cache.iterate().pull(6)
    assert cache.state == 1
    unknown = Cache(Unbatch(Batch(shuffled(), 2)))
    iteration = unknown.iterate()
    iteration.pull(6)
    assert unknown.state == 0
    iteration.pull(1)
    assert unknown.state == 1


def test_what_it_holds_is_looked_up_as_far_as_it_is_pulled() -> None:
    cache = Cache(shuffled())
    whole = all_of(cache)
    iteration = cache.iterate()
    iteration.pull(4)
    assert check_lookups(iteration) == whole[:4]
    assert (iteration.pull(EVERYTHING), iteration.ended) == (2, True)


def test_one_that_may_have_been_filled_is_refused() -> None:
    cache = Cache(shuffled())
    cache.make_uncertain()
    with pytest.raises(UnpredictableOrderError, match="cache"):
        cache.iterate()


def test_over_what_never_changes_nothing_shows() -> None:
    assert Cache(Source(range(3))).is_fixed
    assert not Cache(shuffled()).is_fixed


class Untold(Source):
    """A source of which TensorFlow is not told how many there are, as of record files."""

    @property
    def cardinality(self) -> int:
        return UNKNOWN


def test_what_is_asserted_is_handed_out_as_it_is_read() -> None:
    iteration = Asserted(Source(range(4)), 4).iterate()
    iteration.pull(9)
    assert check_lookups(iteration) == [[0], [1], [2], [3]]


# Behind a cache of 6 a pass of 6 elements that does not ask for more fills it or not.
@pytest.mark.parametrize(
    ("child", "is_full"),
    [
        (Untold(range(6)), 0),
        (Asserted(Untold(range(6)), 6), 1),
        (Repeat(Untold(range(3)), 2), 0),
        (Strided(Repeat(Untold(range(3)), None), limit=6), 1),
        (Asserted(Unbatch(Batch(Source(range(6)), 2)), 6), 1),
    ],
)
def test_a_cache_counts_on_it(child: Source, is_full: int) -> None:
    cache = Cache(child)
    cache.iterate().pull(6)
    assert cache.state == is_full
    assert len(all_of(cache)) == 6
    assert cache.state == 1


@pytest.mark.parametrize(
    ("child", "count", "there"),
    [
        (Source(range(4)), 5, "4"),
        (Source(range(4)), -1, "4"),
        (Untold(range(4)), 3, "4"),
        (Repeat(Source(range(4)), None), 4, "elements without end"),
    ],
)
def test_a_number_that_is_known_to_be_another_is_refused(
    child: Source, count: int, there: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Asserted(child, count)
    assert str(caught.value) == f"assert_cardinality({count}): there are {there}"


def test_what_has_no_end_may_be_said_to_have_none() -> None:
    asserted = Asserted(Repeat(Source(range(4)), None), -1)
    assert (asserted.cardinality, asserted.never_ends) == (INFINITE, True)


def test_what_is_asserted_of_what_nobody_counted_is_not_relied_on() -> None:
    passing = Filter(Source(range(8)), lambda codes: codes > 2)
    assert not Asserted(passing, 8).is_counted  # there are 5, and TensorFlow says so at their end
    assert Asserted(Source(range(8)), 8).is_counted
