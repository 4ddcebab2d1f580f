"""Seed generators: a pair for each iterator, as TensorFlow's kernel draws them."""

from __future__ import annotations

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    ScriptSeeds,
    SeedGenerator,
    shuffle_kernel_seeds,
)
from tests.tfdata.shuffle.shuffle_oracles import iterator_seeds

KERNEL = shuffle_kernel_seeds(7, None)


def test_each_iterator_takes_the_next_pair() -> None:
    generator = SeedGenerator(KERNEL, None, stage="shuffle(3)")
    taken = [generator.take() for _ in range(3)]
    assert [each.seeds for each in taken] == [iterator_seeds(7, None, True, e) for e in range(3)]
    assert generator.state == 3


def test_without_reshuffling_all_iterators_get_the_seeds_of_the_kernel() -> None:
    generator = SeedGenerator(KERNEL, False, stage="shuffle(3)")
    assert {generator.take().seeds for _ in range(3)} == {KERNEL}
    assert (generator.state, generator.is_fixed) == (0, True)
    generator.make_uncertain()
    assert generator.take().seeds == KERNEL


def test_seeds_of_the_machine_are_refused_once_they_are_asked_for() -> None:
    taken = SeedGenerator(None, True, stage="shuffle(3)").take()
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(3\) has no seed"):
        _ = taken.seeds


def test_of_an_uncertain_generator_the_pairs_taken_before_stand() -> None:
    generator = SeedGenerator(KERNEL, True, stage="shuffle(3)")
    before = generator.take()
    generator.make_uncertain()
    after = generator.take()
    assert before.seeds == iterator_seeds(7, None, True, 0)
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(3\) depend on timing"):
        _ = after.seeds


def test_seeds_of_a_script_are_drawn_one_after_the_other() -> None:
    seeds = ScriptSeeds(3)
    drawn = [seeds.kernel(seed) for seed in (None, 5, None)]
    expected = [(None, 0), (5, 0), (None, 1)]
    assert drawn == [shuffle_kernel_seeds(seed, 3, op_index=index) for seed, index in expected]


def test_a_pair_is_taken_as_it_is() -> None:
    assert ScriptSeeds(3).kernel((8, 9)) == KernelSeeds(seed=8, seed2=9)
    assert ScriptSeeds(3).kernel((0, 0)) is None  # the kernel takes those of the machine


def test_without_any_seed_there_is_none_to_know() -> None:
    assert ScriptSeeds().kernel(None) is None
