"""zip: tuples of real tf.data, how far each input is read, and what a tuple is in a batch."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.iteration.batch import Batch, Unbatch
from shardctl.iteration.iteration import Source
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.zipped import Zip
from shardctl.stages import stages as call
from tests.iteration.nodes.mixture_checks import check_pipeline


@pytest.mark.parametrize(
    "lengths", [(3, 5, 4), (5, 3, 4), (4, 4, 4), (3, 3, 5), (5, 4, 3), (0, 3, 3)]
)
def test_at_the_end_all_inputs_have_been_asked_as_often(lengths: tuple[int, ...]) -> None:
    # Seen with generators that count: TensorFlow asks each one once more than it has tuples.
    node = Zip([Source(range(length)) for length in lengths])
    iteration = node.iterate()
    assert iteration.pull(100) == min(lengths) == node.cardinality
    read = [source.pulled for source in iteration.sources]
    assert read == [min(min(lengths) + 1, length) for length in lengths]


def test_caches_of_one_length_fill_together() -> None:
    def cached(first: int) -> call.Pipeline:
        numbers = call.Values(values=tuple(range(first, first + 12)))
        stages = (call.Shuffle(buffer=5, seed=first), call.Cache())
        return call.Pipeline(source=numbers, stages=stages)

    pipeline = call.Pipeline(source=call.Zip(inputs=(cached(0), cached(20), cached(40))))
    assert check_pipeline(pipeline, random.Random(0)) == 3


def test_batches_in_tuples_and_tuples_in_batches_are_those_of_tensorflow() -> None:
    numbers = call.Pipeline(
        source=call.Values(values=tuple(range(11))), stages=(call.Batch(size=3),)
    )
    singles = call.Pipeline(source=call.Values(values=(70, 71, 72, 73, 74)))
    pipeline = call.Pipeline(source=call.Zip(inputs=(singles, numbers, singles)))
    assert check_pipeline(pipeline, random.Random(0)) == 3


def test_a_tuple_stays_together_in_a_batch_that_is_taken_apart() -> None:
    node = Unbatch(Batch(Zip((Source(range(5)), Source(range(10, 15)))), 2))
    iteration = node.iterate()
    assert iteration.pull(9) == 5
    assert iteration.width == 2
    assert iteration.examples(np.array([4, 1])).tolist() == [4, 14, 1, 11]


def test_a_tuple_is_no_batch() -> None:
    with pytest.raises(UsageError, match="elements that are no batches"):
        Unbatch(Zip((Source(range(5)), Source(range(5)))))


def test_millions_of_tuples_are_counted_at_once() -> None:
    node = Zip((Repeat(Source(range(7)), None), Repeat(Source(range(10)), None)))
    assert node.is_infinite
    assert not Zip((Repeat(Source(range(7)), None), Source(range(10)))).is_infinite
    iteration = node.iterate()
    assert iteration.pull(10**12) == 10**12
    assert iteration.examples(np.array([10**12 - 1])).tolist() == [(10**12 - 1) % 7, 9]
