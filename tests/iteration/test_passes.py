"""Passes over a dataset object, by which pair of seeds each epoch of each reads."""

from __future__ import annotations

import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.build import iteration_of_pass
from shardctl.iteration.iteration import Source
from shardctl.iteration.shuffle import Shuffle as Shuffled
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Map,
    Prefetch,
    Repeat,
    Shuffle,
    Skip,
    Take,
    Unbatch,
)
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds, Loop, SeedGenerator, iterators_per_pass
from tests.iteration.elements import chain, elements_of, node_of, pass_of
from tests.tfdata.shuffle_oracles import iterator_seeds

SHUFFLE = Shuffle(buffer=9, seed=7)


def pairs_of(*stages: Stage, pass_index: int = 0, loop: Loop = "python") -> list[int]:
    """Return which pair of seeds each epoch of 9 elements is shuffled with."""
    orders = {
        tuple(shuffle_permutation(9, 9, iterator_seeds(7, None, True, pair)).tolist()): pair
        for pair in range(40)
    }
    iteration = pass_of(chain(9, *stages), pass_index, loop=loop)
    examples = [code for element in elements_of(iteration) for code in element]
    return [orders[tuple(examples[start : start + 9])] for start in range(0, len(examples), 9)]


@pytest.mark.parametrize(
    ("stages", "loop", "pairs"),
    [
        # TFDATA C2, C3: a fused repeat takes a pair an epoch, another one a pair more.
        ((SHUFFLE, Repeat(count=3)), "python", [3, 4, 5]),
        ((SHUFFLE, Map(), Repeat(count=3)), "python", [4, 5, 6]),
        ((SHUFFLE, Repeat(count=1)), "python", [1]),
        ((SHUFFLE, Cache()), "python", [0]),
        ((SHUFFLE, Cache(), Repeat(count=3)), "python", [0, 0, 0]),
        ((Cache(), SHUFFLE, Repeat(count=2)), "python", [2, 3]),
        # C6: Keras makes an iterator that it does not read; where it knows no length it does not.
        ((SHUFFLE,), "keras-fit", [2]),
        ((SHUFFLE, Batch(size=4)), "keras-fit", [2]),
        ((SHUFFLE, Repeat(count=2), Batch(size=4)), "keras-fit", [3, 4]),
        ((SHUFFLE, Batch(size=4), Unbatch()), "keras-fit", [1]),
    ],
)
def test_the_second_pass_goes_on_with_the_pairs(
    stages: tuple[Stage, ...], loop: Loop, pairs: list[int]
) -> None:
    assert pairs_of(*stages, pass_index=1, loop=loop) == pairs


@pytest.mark.parametrize("num_epochs", [1, 2, 3])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("loop", ["python", "keras-fit"])
@pytest.mark.parametrize("batch", [3, 4])
def test_passes_agree_with_those_of_settings(
    num_epochs: int, fused: bool, loop: Loop, batch: int
) -> None:
    parted = () if fused else (Skip(count=0), Map())
    stages = (SHUFFLE, *parted, Repeat(count=num_epochs), Batch(size=batch))
    is_partial = bool(9 * num_epochs % batch)
    try:
        earlier = 2 * iterators_per_pass(
            num_epochs, fused=fused, loop=loop, partial_last_batch=is_partial
        )
    except UnpredictableOrderError:
        with pytest.raises(UnpredictableOrderError, match="timing"):
            pairs_of(*stages, pass_index=2, loop=loop)
        return
    expected = list(range(earlier, earlier + num_epochs))
    assert pairs_of(*stages, pass_index=2, loop=loop) == expected


@pytest.mark.parametrize("threads", [Map(calls=2), Prefetch(size=2)])
def test_a_prefetch_that_is_cancelled_below_a_repeat_leaves_later_passes_open(
    threads: Stage,
) -> None:
    """Of 150 passes over 41 numbers, cut after 23, 1 to 4 were others; without the prefetch none.

    TensorFlow 2.21: range, shuffle, prefetch, repeat, then map or prefetch, then take.
    """
    shuffle, repeat, take = Shuffle(buffer=41, seed=7), Repeat(count=None), Take(count=23)
    assert pass_of(chain(41, shuffle, repeat, threads, take), 1).pulled == 23
    own = chain(41, shuffle, Prefetch(size=2), repeat, threads, take)
    assert pass_of(own).pulled == 23
    with pytest.raises(UnpredictableOrderError, match="timing"):
        pass_of(chain(41, shuffle, Prefetch(size=2), repeat, threads, take), 1)


def test_a_pass_cut_short_above_what_reads_ahead_is_the_last_certain_one() -> None:
    stages = (SHUFFLE, Repeat(count=2), Map(), Take(count=5))
    assert pass_of(chain(9, *stages)).pulled == 5
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(9\) depend on timing"):
        pass_of(chain(9, *stages), 1)
    below = (SHUFFLE, Repeat(count=2), Take(count=5), Map())
    assert pass_of(chain(9, *below), 1).pulled == 5


def test_what_threads_read_beyond_a_cut_refuses_nothing_before_it() -> None:
    # The first prefetch may open one epoch more, the second several: none is handed out.
    ahead = (Prefetch(size=5), Prefetch(size=20))
    stages = (Shuffle(buffer=2, seed=7), Map(calls=1), Repeat(count=9), *ahead, Take(count=3))
    assert pass_of(chain(4, *stages)).pulled == 3
    with pytest.raises(UnpredictableOrderError, match="timing"):
        pass_of(chain(4, *stages), 1)


def test_whether_a_cache_is_filled_is_not_known_where_threads_read_ahead() -> None:
    with pytest.raises(UnpredictableOrderError, match="cache"):
        pass_of(chain(9, SHUFFLE, Cache(), Map(), Take(count=5)), 1)
    assert pass_of(chain(9, SHUFFLE, Cache(), Take(count=5)), 1).pulled == 5


def test_of_one_element_seeds_make_no_order() -> None:
    stages = (Shuffle(buffer=1), Repeat(count=2), Map(), Take(count=5))
    assert elements_of(pass_of(chain(9, *stages), 3)) == [[0], [1], [2], [3], [4]]


class ClaimsMore(Source):
    """A source with fewer elements than it says, as `assert_cardinality` makes of any."""

    @property
    def cardinality(self) -> int:
        return len(self.codes) + 1


@pytest.mark.parametrize(("source", "taken"), [(Source, 2), (ClaimsMore, 1)])
def test_keras_drops_an_iterator_where_as_many_come_as_were_said(
    source: type[Source], taken: int
) -> None:
    generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(3)")
    iteration_of_pass(Shuffled(source(range(5)), 3, generator), 1, loop="keras-fit")
    assert generator.num_taken == taken + 1


# Three batches of 5 or 2 rows have 12 or 9. Keras takes the steps of its first pass, and the one
# that found the end, for those of all others: seen in Keras 3.15.
def test_keras_cuts_passes_that_are_longer_than_the_first() -> None:
    stages = (Batch(size=5), Shuffle(buffer=10, seed=2), Repeat(), Take(count=3), Unbatch())
    lengths = [pass_of(chain(7, *stages), index, loop="keras-fit").pulled for index in range(5)]
    assert lengths == [9, 10, 10, 9, 9]
    assert [pass_of(chain(7, *stages), index).pulled for index in range(2)] == [9, 12]


def test_passes_are_counted_from_0() -> None:
    with pytest.raises(UsageError, match="pass -1"):
        iteration_of_pass(node_of(chain(9, SHUFFLE)), -1)


def test_no_pass_follows_one_without_end() -> None:
    node = node_of(chain(9, SHUFFLE, Repeat()))
    assert iteration_of_pass(node).pull(1000) == 1000
    with pytest.raises(UsageError, match="repeats forever"):
        iteration_of_pass(node, 1)


def test_a_late_pass_of_what_never_changes_costs_nothing() -> None:
    node = node_of(chain(9, Shuffle(buffer=3, seed=1, reshuffle=False), Batch(size=2)))
    assert iteration_of_pass(node, 10**15).pull(9) == 5
