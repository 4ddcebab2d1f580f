"""A filter with a list of what passes, against the predicate in real tf.data."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.batch import Batch
from shardctl.iteration.build import build
from shardctl.iteration.filtered import Filter
from shardctl.iteration.iteration import NOTHING, Source
from shardctl.iteration.repeat import Repeat
from shardctl.stages import stages as call
from tests.cases import FUZZ, random_of_a_fuzz_run
from tests.iteration.nodes.mixture_checks import check_random


def test_random_filters_are_those_of_tensorflow() -> None:
    assert check_random(7, random.Random(0), filters=True) > 16


@pytest.mark.fuzz
def test_many_filters_are_those_of_tensorflow() -> None:
    number = max(FUZZ // 4, 20)
    assert check_random(number, random_of_a_fuzz_run(), filters=True) > 2 * number


def test_long_inputs_are_found_over_many_checkpoints() -> None:
    iteration = Filter(Source(range(300_000)), lambda codes: codes % 7 == 3).iterate()
    assert iteration.pull(10) == 10
    assert iteration.inputs[0].pulled == 67  # up to the tenth that passes, and no further
    assert iteration.pull(10**9) == len(range(3, 300_000, 7)) - 10
    expected = np.arange(3, 300_000, 7)
    elements = np.random.default_rng(0).integers(0, len(expected), 200)
    assert iteration.examples(elements).tolist() == expected[elements].tolist()
    query, found = iteration.elements_of(np.arange(200_000, 200_050))
    assert (np.arange(200_000, 200_050)[query] == expected[found]).all()
    assert len(found) == np.isin(np.arange(200_000, 200_050), expected).sum()


def test_a_filter_lets_nothing_pass_for_ever() -> None:
    iteration = Filter(Repeat(Source(range(9)), None), lambda codes: codes > 9).iterate()
    with pytest.raises(UsageError, match="none passes; where none does TensorFlow reads on"):
        iteration.pull(1)


def test_a_filter_of_batches_is_refused() -> None:
    with pytest.raises(UsageError, match="put the filter before them"):
        Filter(Batch(Source(range(9)), 2), lambda codes: codes > 1)


def test_a_filter_without_a_list_is_refused() -> None:
    pipeline = call.Pipeline(source=call.Range(stop=3), stages=(call.Filter(),))
    with pytest.raises(UnpredictableOrderError, match="filter"):
        build(pipeline, lambda read: NOTHING)
