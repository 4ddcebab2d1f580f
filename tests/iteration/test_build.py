"""Nodes of pipelines: which stages make which, and that real TensorFlow hands out the same."""

from __future__ import annotations

import random
import time
from typing import get_args

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.iteration import EVERYTHING, lasting_below
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Concatenate,
    Filter,
    Map,
    Opaque,
    Pipeline,
    Prefetch,
    Range,
    Repeat,
    Shuffle,
    Take,
    Unbatch,
    Values,
    WithOptions,
)
from shardctl.tfdata.shuffle_seeds import Loop
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.iteration.elements import chain, check_lookups, elements_of, node_of, pass_of
from tests.iteration.real_chains import (
    behind,
    random_chain,
    real_dataset,
    real_passes,
    seeded,
    set_seed,
)


def test_stages_follow_one_another() -> None:
    pipeline = Pipeline(
        source=Values(values=(5, 6, 7, 8, 9)), stages=(Take(count=4), Batch(size=3))
    )
    assert elements_of(pass_of(pipeline)) == [[5, 6, 7], [8]]


@pytest.mark.parametrize(
    "stage",
    [
        Filter(),
        Opaque(call="flat_map", reason="it makes elements of its own"),
        Map(calls=2, deterministic=False),
    ],
)
def test_a_stage_that_leaves_the_order_open_is_refused_by_name(
    stage: Filter | Opaque | Map,
) -> None:
    name = stage.call if isinstance(stage, Opaque) else stage.name
    with pytest.raises(UnpredictableOrderError, match=name):
        node_of(chain(5, stage))


def test_concatenated_chains_are_built_after_the_chain_they_follow() -> None:
    first, second = Shuffle(buffer=9), Shuffle(buffer=9)
    alone = chain(5, first)
    joined = chain(5, first, Concatenate(other=Pipeline(source=Range(stop=5), stages=(second,))))
    whole = elements_of(pass_of(joined, global_seed=3))
    assert whole[:5] == elements_of(pass_of(alone, global_seed=3))
    assert whole[5:] != whole[:5]  # its seed is the next one that is drawn


def test_threads_of_a_warm_start_read_before_they_are_asked() -> None:
    # The iterator that the repeat makes beyond its last epoch takes a pair of the upper shuffle;
    # whether it takes one of the lower depends on threads, if they read before they are asked.
    shuffles = (Shuffle(buffer=9, seed=1), Shuffle(buffer=9, seed=2))
    stages = (*shuffles, Map(calls=2), Repeat(count=2))
    pass_of(chain(5, *stages), 1)
    with pytest.raises(UnpredictableOrderError, match="timing"):
        pass_of(chain(5, *stages, WithOptions(warm_start=True)), 1)


@pytest.mark.long
def test_pulling_at_once_does_what_pulling_one_by_one_does() -> None:
    rng = random.Random(5)
    for _ in range(400):
        pipeline = random_chain(rng)
        try:
            at_once, stepwise = node_of(pipeline, 3), node_of(pipeline, 3)
        except UsageError:
            continue
        try:
            for _ in range(3):
                one, other = at_once.iterate(), stepwise.iterate()
                stop = rng.choice([EVERYTHING, rng.randrange(40)])
                one.pull(stop)
                while other.pulled < stop and not other.ended:
                    other.pull(min(stop - other.pulled, rng.choice([1, 1, 2, 5])))
                assert (one.pulled, one.ended) == (other.pulled, other.ended), pipeline
                one.abandon()
                other.abandon()
                states = [
                    [each.state for each in lasting_below(node)] for node in (at_once, stepwise)
                ]
                assert states[0] == states[1], pipeline
        except UnpredictableOrderError:
            continue
        add_cases()


def check_against_tensorflow(
    pipeline: Pipeline, *, num_passes: int, loop: Loop, seed: int | None
) -> int:
    """Compare passes with TensorFlow's; return how many were, none where a refusal stands."""
    case = f"{num_passes} passes of {loop}, global seed {seed}: {pipeline!r}"
    set_seed(seed)
    dataset = real_dataset(pipeline)
    try:
        real = real_passes(dataset, num_passes, loop)
    except Exception as refusal:
        # Batches of batches of different sizes.
        if "shape" in str(refusal).lower():
            return 0
        raise AssertionError(case) from refusal
    try:
        assert node_of(pipeline, seed).cardinality == int(dataset.cardinality()), case
        for index in range(num_passes):
            iteration = pass_of(pipeline, index, loop=loop, global_seed=seed)
            assert check_lookups(iteration) == real[index], f"pass {index} of {case}"
    except UnpredictableOrderError as refusal:
        if "timing" in str(refusal):
            return index
        raise AssertionError(case) from refusal
    except UsageError as refusal:
        if "unbatch of batches of batches" in str(refusal):
            return 0
        raise AssertionError(case) from refusal
    return num_passes


def check_random_chains(rng: random.Random, count: int) -> None:
    passes = 0
    for _ in range(count):
        seed = rng.choice([None, None, 3, 0])
        pipeline = random_chain(rng)
        if seed is None:
            pipeline = seeded(pipeline)
        passes += check_against_tensorflow(
            pipeline, num_passes=rng.randint(1, 4), loop=rng.choice(get_args(Loop)), seed=seed
        )
    assert passes > count, "most chains are compared, over more than one pass"
    add_cases(passes)


def test_chains_hand_out_what_tensorflow_does() -> None:
    check_random_chains(random.Random(12), 16)


@pytest.mark.fuzz
def test_fuzz_chains_hand_out_what_tensorflow_does() -> None:
    check_random_chains(random_of_a_fuzz_run(), FUZZ)


def test_a_pass_of_a_billion_elements_is_counted_at_once() -> None:
    stages = (
        Shuffle(buffer=10_000, seed=1),
        Batch(size=64),
        Repeat(count=20),
        Unbatch(),
        Batch(size=1000, drop_remainder=True),
    )
    iteration = pass_of(chain(10**9, *stages))
    assert iteration.num_examples == 20 * 10**9
    places = np.array([5, 10**9 - 7, 10**10])
    # Batches of 1,000 of an epoch of 10**9: no place moves.
    inner = pass_of(chain(10**9, Shuffle(buffer=10_000, seed=1), Repeat(count=20)))
    assert iteration.codes_at(places[:1]).tolist() == inner.codes_at(places[:1]).tolist()


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ((Repeat(count=2), Prefetch(size=30), Take(count=3)), "shuffle"),
        ((Cache(), Prefetch(size=30), Take(count=3)), "cache"),
    ],
)
def test_what_is_refused_has_two_outcomes(above: tuple[Stage, ...], name: str) -> None:
    stages = (Shuffle(buffer=2, seed=7), *above)
    with pytest.raises(UnpredictableOrderError, match=name):
        pass_of(chain(8, *stages), 1)

    def second_pass(*, slow_input: bool) -> list[list[int]]:
        import tensorflow as tf

        def wait(code: int) -> int:
            time.sleep(0.05 if slow_input else 0)
            return code

        source = tf.data.Dataset.range(8).map(lambda code: tf.py_function(wait, [code], tf.int64))
        dataset = behind(source, stages)
        for _ in dataset:  # a program that takes its time lets the threads read further
            time.sleep(0 if slow_input else 0.1)
        return real_passes(dataset, 1, "python")[0]

    assert second_pass(slow_input=True) != second_pass(slow_input=False)
