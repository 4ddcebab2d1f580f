"""Choices that are read from a dataset: read as far as TensorFlow reads them, and no further."""

from __future__ import annotations

import random

import pytest

from shardctl.errors import UsageError
from shardctl.iteration.batch import Batch
from shardctl.iteration.directed import Chosen
from shardctl.iteration.iteration import Source
from shardctl.stages.stages import (
    ChooseFromDatasets,
    Map,
    Pipeline,
    Range,
    Repeat,
    SampleFromDatasets,
    Shuffle,
    Values,
)
from tests.iteration.nodes.mixture_checks import check_pipeline


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("map_between", [False, True])
def test_choices_shuffled_anew_are_those_of_tensorflow_in_later_passes(
    stop: bool, map_between: bool
) -> None:
    shuffle = Shuffle(buffer=3, seed=1)
    stages = (shuffle, Map(), Repeat(count=40)) if map_between else (shuffle, Repeat(count=40))
    inputs = tuple(
        Pipeline(source=Values(values=tuple(range(20 * i, 20 * i + 9 + i)))) for i in range(3)
    )
    choices = Pipeline(source=Range(stop=3), stages=stages)
    source = ChooseFromDatasets(inputs=inputs, choices=choices, stop_on_empty=stop)
    # Where a pass is cut short, threads in front of a map may have read on.
    expected = 1 if map_between else 3
    assert check_pipeline(Pipeline(source=source), random.Random(0)) >= expected


def test_choices_drawn_anew_for_each_pass_are_those_of_tensorflow() -> None:
    inputs = tuple(
        Pipeline(source=Values(values=tuple(range(30 * i, 30 * i + 25)))) for i in range(3)
    )
    for rerandomize in (None, False, True):
        source = SampleFromDatasets(inputs=inputs, seed=3, rerandomize=rerandomize)
        pipeline = Pipeline(source=source, stages=(Repeat(count=2),))
        assert check_pipeline(pipeline, random.Random(0)) == 3


def test_inputs_that_are_ever_chosen_are_found() -> None:
    assert list(Chosen(Source([2, 0, 2, 9, -1])).ever(3)) == [0, 2]


def test_a_choice_is_one_number() -> None:
    with pytest.raises(UsageError, match="a choice is one number"):
        Chosen(Batch(Source(range(4)), 2))
