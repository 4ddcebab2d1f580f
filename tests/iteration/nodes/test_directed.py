"""Mixtures: every element of real tf.data, its inverse, what is consumed, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.iteration import directed
from shardctl.iteration.build import build
from shardctl.iteration.directed import Chosen, Directed, DirectedIteration
from shardctl.iteration.iteration import EVERYTHING, INFINITE, NOTHING, UNKNOWN
from shardctl.stages.part import Source, Stage
from shardctl.stages.pipelines import open_stages
from shardctl.stages.stages import (
    Cache,
    ChooseFromDatasets,
    Map,
    Pipeline,
    Range,
    Repeat,
    SampleFromDatasets,
    Shuffle,
    Values,
)
from shardctl.tfdata import mixture as mixture_schedule
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.iteration.nodes.mixture_cases import real_dataset
from tests.iteration.nodes.mixture_checks import check_pipeline, check_random


def _numbers(first: int, count: int, *stages: Stage) -> Pipeline:
    return Pipeline(source=Values(values=tuple(range(first, first + count))), stages=stages)


def _iteration(source: Source) -> DirectedIteration:
    node = build(Pipeline(source=source), lambda read: NOTHING)
    while not isinstance(node, Directed):
        (node,) = node.inputs
    return node.iterate()


def test_random_combinations_are_those_of_tensorflow() -> None:
    assert check_random(9, random.Random(0)) > 24


@pytest.mark.fuzz
def test_many_combinations_are_those_of_tensorflow() -> None:
    assert check_random(FUZZ, random_of_a_fuzz_run()) > 2 * FUZZ


@pytest.mark.parametrize("stop", [False, True])
def test_a_long_mixture_is_that_of_tensorflow_at_any_place(
    stop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of elements of inputs that end at different times, resumed at 40 counts.

    They take several times as many choices as there are here between two checkpoints.
    """
    monkeypatch.setattr(mixture_schedule, "BLOCK", 1 << 10)
    monkeypatch.setattr(directed, "BLOCK", 1 << 10)
    first, second, total = 2_400, 4_400, 6_000
    inputs = (
        _numbers(0, first, Shuffle(buffer=100, seed=1)),
        _numbers(first, second - first),
        _numbers(second, total - second, Shuffle(buffer=1000, seed=2)),
    )
    source = SampleFromDatasets(inputs=inputs, weights=(0.5, 0.3, 0.2), seed=5, stop_on_empty=stop)
    iteration = _iteration(source)
    iteration.pull(EVERYTHING)
    real = np.concatenate(
        list(real_dataset(Pipeline(source=source)).batch(4096).as_numpy_iterator())
    )
    assert iteration.pulled == len(real)
    for count in random.Random(0).sample(range(len(real) + 1), 40):
        # Nothing lost and nothing repeated: what is left is TensorFlow's own rest.
        rest = iteration.examples(np.arange(count, min(count + 300, len(real))))
        assert rest.tolist() == real[count : count + 300].tolist()
        add_cases()
    assert iteration.examples(np.arange(len(real))).tolist() == real.tolist()
    codes = np.arange(0, total, 97)
    query, elements = iteration.elements_of(codes)
    assert real[elements].tolist() == codes[query].tolist()
    assert len(elements) == np.isin(codes, real).sum()


@pytest.mark.long
def test_an_iterator_stopped_at_a_count_has_read_of_each_input_what_came_of_it() -> None:
    rng = random.Random(1)
    endless = tuple(_numbers(100 * i, 30 + i, Repeat()) for i in range(4))
    source = SampleFromDatasets(inputs=endless, weights=(4.0, 3.0, 2.0, 1.0), seed=1)
    whole = _iteration(source)
    whole.pull(20_000)
    for _ in range(40):
        count = rng.randrange(20_000)
        stopped = _iteration(source)
        assert stopped.pull(count) == count
        handed_out = whole.examples(np.arange(count)) // 100
        consumed = [one.pulled for one in stopped.sources]
        assert consumed == np.bincount(handed_out, minlength=4).tolist()


def test_millions_of_elements_are_a_matter_of_checkpoints() -> None:
    choices = Pipeline(source=Range(stop=3), stages=(Repeat(),))
    inputs = tuple(_numbers(10 * i, 7, Repeat()) for i in range(3))
    iteration = _iteration(ChooseFromDatasets(inputs=inputs, choices=choices))
    assert iteration.pull(10**7) == 10**7
    places = np.array([0, 1, 2, 3, 10**7 - 1])
    assert iteration.examples(places).tolist() == [0, 10, 20, 1, (10**7 - 1) // 3 % 7]
    assert [one.pulled for one in iteration.sources] == [3333334, 3333333, 3333333]


def test_iterators_of_inputs_are_made_though_nothing_is_read_of_them() -> None:
    once = Pipeline(source=Values(values=(1, 1)))
    later = Pipeline(source=Values(values=(0,) * 9), stages=())
    for choices in (once, later):
        source = ChooseFromDatasets(
            inputs=(_numbers(0, 9, Shuffle(buffer=9, seed=1)), _numbers(9, 5)), choices=choices
        )
        assert check_pipeline(Pipeline(source=source), random.Random(0)) == 3


def test_caches_in_inputs_that_are_cut_short_stay_empty() -> None:
    inputs = (_numbers(0, 30, Shuffle(buffer=9, seed=1), Cache()), _numbers(30, 5))
    source = SampleFromDatasets(inputs=inputs, seed=1, stop_on_empty=True)
    assert check_pipeline(Pipeline(source=source), random.Random(0)) == 3


@pytest.mark.parametrize(
    ("weights", "number"), [((1.0, 0.0), 0), ((0.0, 1.0), 1), ((0.5, 0.5), None)]
)
def test_one_input_of_some_weight_is_the_dataset_itself(
    weights: tuple[float, ...], number: int | None
) -> None:
    inputs = (_numbers(0, 9, Shuffle(buffer=9, seed=1)), _numbers(9, 9, Shuffle(buffer=9, seed=2)))
    pipeline = Pipeline(
        source=SampleFromDatasets(inputs=inputs, weights=weights, seed=1),
        stages=(Repeat(count=2),),
    )
    # Right behind such a shuffle the repeat makes one op with it.
    assert check_pipeline(pipeline, random.Random(0)) == 3
    cardinality = build(pipeline, lambda read: NOTHING).cardinality
    assert cardinality == (UNKNOWN if number is None else 18)
    assert cardinality == int(real_dataset(pipeline).cardinality())


@pytest.mark.parametrize("stop", [False, True])
def test_a_mixture_with_an_endless_input_is_called_infinite(stop: bool) -> None:
    inputs = (_numbers(0, 3), _numbers(3, 3, Repeat()))
    source = SampleFromDatasets(inputs=inputs, seed=1, stop_on_empty=stop)
    node = build(Pipeline(source=source), lambda read: NOTHING)
    assert node.cardinality == int(real_dataset(Pipeline(source=source)).cardinality()) == INFINITE
    assert node.is_infinite is not stop
    assert node.never_ends is not stop


@pytest.mark.parametrize("wrong", [-1, 2])
def test_a_choice_that_is_no_input_is_refused_where_tensorflow_fails(wrong: int) -> None:
    import tensorflow as tf

    choices = Pipeline(source=Values(values=(0, 1, 0, wrong, 0)))
    inputs = (_numbers(0, 9), _numbers(9, 9))
    source = ChooseFromDatasets(inputs=inputs, choices=choices)
    iteration = _iteration(source)
    assert iteration.pull(3) == 3
    with pytest.raises(UsageError, match=f"choice {wrong} is none of its 2 inputs.* after 3"):
        iteration.pull(1)
    real = iter(real_dataset(Pipeline(source=source)))
    assert [int(next(real)) for _ in range(3)] == iteration.examples(np.arange(3)).tolist()
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(real)


@pytest.mark.parametrize("weights", [(1.0, 1e-30), (1.0, 1e-60)])
def test_an_input_that_is_never_chosen_is_not_looked_for_for_ever(
    weights: tuple[float, float],
) -> None:
    inputs = (_numbers(0, 9), _numbers(9, 9))
    source = SampleFromDatasets(inputs=inputs, weights=weights, seed=1)
    iteration = _iteration(source)
    assert iteration.pull(9) == 9
    with pytest.raises(UsageError, match="after 9 elements only inputs that are"):
        iteration.pull(1)


def test_choices_that_leave_out_an_input_are_not_made_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Chosen, "most_in_vain", 1 << 17)
    choices = Pipeline(source=Values(values=(0,)), stages=(Repeat(),))
    inputs = (_numbers(0, 9), _numbers(9, 9, Map()))
    source = ChooseFromDatasets(inputs=inputs, choices=choices, stop_on_empty=False)
    iteration = _iteration(source)
    assert iteration.pull(9) == 9
    with pytest.raises(UsageError, match=r"are left \(1, counted.* more than 131,072 choices"):
        iteration.pull(1)


def test_choices_of_examples_are_refused() -> None:
    choices = Pipeline(stages=(Repeat(),))
    with pytest.raises(UsageError, match="its choices are those of read, whose elements are data"):
        _iteration(ChooseFromDatasets(inputs=(_numbers(0, 9),), choices=choices))


def test_one_input_of_some_weight_needs_no_seed() -> None:
    inputs = (_numbers(0, 9), _numbers(9, 9))
    source = SampleFromDatasets(inputs=inputs, weights=(0.0, 1.0))
    assert open_stages(Pipeline(source=source)) == ()
    assert check_pipeline(Pipeline(source=source), random.Random(0)) == 3
    (found,) = open_stages(Pipeline(source=replace(source, weights=None)))
    assert found.stage.name == "sample_from_datasets"
