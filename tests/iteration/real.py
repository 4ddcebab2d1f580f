"""What the real TensorFlow and Keras make of pipelines, beside what their nodes hand out."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from shardctl.base.tfds_rules import Loop
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.stages.stages import Pipeline, Range, Shared, Values
from shardctl.stages.text import parse_stages
from tests.cases import FUZZ, add_cases
from tests.iteration.elements import check_lookups, node_of, pass_of
from tests.pipelines.random_pipelines import Element, Habits, RandomPipeline, Sized, random_pipeline
from tests.pipelines.real_pipelines import examples_of
from tests.pipelines.real_pipelines import real_dataset as made_of

Pass = list[list[int]]  # the examples of each element


def random_of_numbers(rng: random.Random, habits: Habits) -> RandomPipeline:
    """Return a pipeline whose sources have numbers of their own, so that each says where from."""
    firsts = count(0, 100)

    def numbers(rng: random.Random) -> Sized:
        size, first = rng.choice([0, 1, 2, 3, *range(4, 61)]), next(firsts)
        if rng.random() < 0.3:
            return Sized(source=Range(stop=size), num_examples=size)
        values = tuple(range(first, first + size))
        return Sized(source=Values(values=values), num_examples=size)

    return random_pipeline(rng, numbers, habits)


def real_dataset(pipeline: Pipeline) -> Any:
    """Return the `tf.data.Dataset` that a script with these stages makes."""
    shared: dict[str, Any] = {}

    def read(source: Shared) -> Any:
        if source.label not in shared:
            shared[source.label] = made_of(source.pipeline, read)
        return shared[source.label]

    return made_of(pipeline, read)


def set_seed(seed: int | None) -> None:
    """Set the global seed, or none, as it is when a script begins."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.random.set_seed(0 if seed is None else seed)
    if seed is None:
        context.context()._seed = None


def real_passes(
    dataset: Any, num_passes: int, loop: Loop = "python", kind: Element | None = None
) -> list[Pass]:
    """Return what each pass hands out, in a Python loop or in the loop of Keras' `fit`."""
    if loop == "python":
        return [[_examples(element, kind) for element in dataset] for _ in range(num_passes)]
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    strategy = tf.distribute.get_strategy()
    epochs = TFEpochIterator(x=dataset, distribute_strategy=strategy, steps_per_execution=1)
    epochs.reset()  # as `fit` does, once
    found: list[Pass] = []
    for _ in range(num_passes):
        found.append([])
        with epochs.catch_stop_iteration():
            for _, _, iterator in epochs:
                found[-1].append(_examples(next(iterator), kind))
    return found


def _examples(element: Any, kind: Element | None = None) -> list[int]:
    if kind is not None:
        return list(examples_of(element, kind))
    if isinstance(element, tuple):
        return [number for part in element for number in _examples(part)]
    return list(map(int, np.ravel(element).tolist()))


def check_against_tensorflow(
    pipeline: Pipeline | str,
    num_passes: int = 3,
    loop: Loop = "python",
    seed: int | None = None,
    kind: Element | None = None,
) -> int:
    """Compare passes with TensorFlow's; return how many were, none where a refusal stands."""
    case = f"{num_passes} passes of {loop}, global seed {seed}: {pipeline}"
    pipeline = parse_stages(pipeline) if isinstance(pipeline, str) else pipeline
    try:
        node = node_of(pipeline, seed)
    except UsageError as refusal:
        if "batches" in str(refusal):
            return 0
        raise AssertionError(case) from refusal
    if node.is_infinite:
        return 0
    set_seed(seed)
    dataset = real_dataset(pipeline)
    assert node.cardinality == int(dataset.cardinality()), case
    predicted = []
    try:
        for index in range(num_passes):
            predicted.append(pass_of(pipeline, index, loop=loop, seed=seed))
    except UnpredictableOrderError as refusal:
        if "timing" not in str(refusal):
            raise AssertionError(case) from refusal
    try:
        real = real_passes(dataset, len(predicted), loop, kind)
    except Exception as refusal:
        if "shape" in str(refusal).lower():
            return 0  # batches of batches of different sizes
        raise AssertionError(case) from refusal
    for index, iteration in enumerate(predicted):
        # An iterator that was begun and cut before its first element is asked, too.
        with suppress(UnpredictableOrderError):
            assert check_lookups(iteration) == real[index], f"pass {index} of {case}"
    return len(predicted)


def check_random(num_cases: int, rng: random.Random, **habits: Any) -> None:
    """Compare random pipelines; most have more than one pass with one order."""
    num_passes = 0
    for _ in range(num_cases):
        seed = rng.choice([None, None, rng.randrange(1000)])
        seedless = 0.0 if seed is None else 0.3
        made = random_of_numbers(rng, Habits(most_examples=400, seedless=seedless, **habits))
        loop: Loop = rng.choice(["python", "python", "keras-fit"])
        num_passes += check_against_tensorflow(
            made.pipeline, rng.randint(1, 4), loop, seed, made.element
        )
        add_cases()
    assert num_passes > num_cases or FUZZ < 100  # of a few random ones nobody knows
