"""One dataset object used more than once: exact where it is certain, refused elsewhere."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.build import build
from shardctl.iteration.iteration import NOTHING
from shardctl.iteration.iteration import Source as SourceNode
from shardctl.iteration.repeat import Repeat as RepeatNode
from shardctl.iteration.zipped import certain_left
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Cache,
    Concatenate,
    Map,
    Pipeline,
    Repeat,
    SampleFromDatasets,
    Shared,
    Shuffle,
    Take,
    Values,
    Zip,
)
from tests.cases import FUZZ, random_of_a_fuzz_run
from tests.iteration.nodes.mixture_checks import check_pipeline, check_random, predicted

SHUFFLED = Pipeline(source=Values(values=tuple(range(20))), stages=(Shuffle(buffer=20, seed=5),))


def _used(*stages: Stage, of: Pipeline = SHUFFLED) -> Pipeline:
    return Pipeline(source=Shared(label="ds", pipeline=of), stages=stages)


def test_random_combinations_of_one_object_are_those_of_tensorflow() -> None:
    assert check_random(7, random.Random(0), sharing=True) > 16


@pytest.mark.fuzz
def test_many_combinations_of_one_object_are_those_of_tensorflow() -> None:
    number = max(FUZZ // 4, 20)
    assert check_random(number, random_of_a_fuzz_run(), sharing=True) > 2 * number


CACHED = Pipeline(source=SHUFFLED.source, stages=(*SHUFFLED.stages, Cache()))


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline(source=Zip(inputs=(_used(), _used()))),
        Pipeline(source=Zip(inputs=(_used(Map()), _used(Map()), _used()))),
        Pipeline(source=Zip(inputs=(_used(Repeat(count=2)), _used()))),
        Pipeline(source=Zip(inputs=(_used(Repeat(count=2)), _used(Repeat(count=2))))),
        Pipeline(source=Zip(inputs=(_used(Take(count=3), Repeat(count=4)), _used()))),
        Pipeline(source=Zip(inputs=(_used(of=CACHED), _used(of=CACHED)))),
        Pipeline(source=Zip(inputs=(_used(Repeat(count=2), of=CACHED), _used(of=CACHED)))),
        _used(Concatenate(other=_used())),
        _used(Concatenate(other=_used(of=CACHED)), of=CACHED),
        _used(Concatenate(other=_used(Map())), Repeat(count=2)),
        Pipeline(source=SampleFromDatasets(inputs=(_used(), _used(), _used()), seed=1)),
        Pipeline(
            source=SampleFromDatasets(
                inputs=(_used(Repeat()), _used(Shuffle(buffer=3, seed=1), Repeat())), seed=1
            ),
            stages=(Take(count=90),),
        ),
    ],
)
def test_one_object_twice_is_that_of_tensorflow(pipeline: Pipeline) -> None:
    assert check_pipeline(pipeline, random.Random(0)) >= 1


def test_two_objects_made_alike_are_not_one() -> None:
    twice = Pipeline(source=Zip(inputs=(SHUFFLED, SHUFFLED)))
    assert check_pipeline(twice, random.Random(0)) == 3
    (one, other) = predicted(twice, 1)[0].examples(np.arange(20)).reshape(20, 2).T
    assert one.tolist() == other.tolist()
    shared = Pipeline(source=Zip(inputs=(_used(), _used())))
    (one, other) = predicted(shared, 1)[0].examples(np.arange(20)).reshape(20, 2).T
    assert one.tolist() != other.tolist()


def test_a_cache_that_threads_fill_by_turns_is_open_from_the_second_pass_on() -> None:
    # Which of the two fills it first, TensorFlow's threads decide.
    pipeline = Pipeline(source=Zip(inputs=(_used(of=CACHED), _used(Map(), of=CACHED))))
    node = build(pipeline, lambda read: NOTHING)
    first = node.iterate()
    assert first.pull(100) == 20
    first.check()
    with pytest.raises(UnpredictableOrderError, match=r"cache\(\) is filled depends on timing"):
        node.iterate()


def test_seeds_that_threads_take_by_turns_are_open() -> None:
    pipeline = Pipeline(
        source=Zip(
            inputs=(_used(Map(), Repeat(count=3), Map()), _used(Map(), Repeat(count=3), Map()))
        )
    )
    iteration = build(pipeline, lambda read: NOTHING).iterate()
    iteration.pull(50)
    with pytest.raises(UnpredictableOrderError, match="shuffle"):
        iteration.check()


def test_one_label_is_one_pipeline() -> None:
    pipeline = Pipeline(source=Zip(inputs=(_used(), _used(of=CACHED))))
    with pytest.raises(UsageError, match="two different pipelines are called 'ds'"):
        build(pipeline, lambda read: NOTHING)


def test_what_is_left_of_a_repeat_of_perhaps_nothing_is_not_certain() -> None:
    some = RepeatNode(SourceNode(range(3)), None)
    none = RepeatNode(SourceNode(range(0)), None)
    assert certain_left(some, some.iterate()) > 10**12
    assert certain_left(none, none.iterate()) == 0
