"""What a random combination is checked for: three passes of real tf.data, and every lookup."""

from __future__ import annotations

import random

import numpy as np

from shardctl.errors import UnpredictableOrderError
from shardctl.iteration.build import build
from shardctl.iteration.iteration import EVERYTHING, NOTHING, Iteration
from shardctl.stages.stages import Pipeline
from tests.cases import add_cases
from tests.iteration.nodes.mixture_cases import Drawing, passes, real_dataset, real_passes

PASSES = 3


def elements_of_pass(iteration: Iteration, start: int = 0) -> list[list[int]]:
    """Return the codes of each element from one on, by random access."""
    elements = np.arange(start, iteration.pulled)
    codes, widths = iteration.examples(elements), iteration.widths(elements)
    return [part.tolist() for part in np.split(codes, np.cumsum(widths)[:-1])][: len(elements)]


def predicted(pipeline: Pipeline, num_passes: int = PASSES) -> list[Iteration]:
    """Return the iterators of passes read to their end, up to the first whose order is open."""
    node = build(pipeline, lambda read: NOTHING, kept=lambda stage: passes)
    if node.is_infinite:
        return []
    iterations: list[Iteration] = []
    try:
        for _ in range(num_passes):
            iteration = node.iterate()
            iteration.pull(EVERYTHING)
            iteration.check()
            iterations.append(iteration)
    except UnpredictableOrderError:
        pass
    return iterations


def check_pipeline(pipeline: Pipeline, rng: random.Random) -> int:
    """Compare a pipeline with tf.data; return how many of its passes have one order."""
    iterations = predicted(pipeline)
    real = real_passes(real_dataset(pipeline), len(iterations))
    for number, (iteration, expected) in enumerate(zip(iterations, real, strict=True)):
        assert elements_of_pass(iteration) == expected, (number, pipeline)
        count = rng.randrange(len(expected) + 1)
        assert elements_of_pass(iteration, count) == expected[count:], (number, count, pipeline)
        _check_inverse(iteration, expected)
    return len(iterations)


def _check_inverse(iteration: Iteration, expected: list[list[int]]) -> None:
    everywhere = [(code, at) for at, element in enumerate(expected) for code in element]
    codes = np.array(sorted({code for code, _ in everywhere} | {10**6}))
    try:
        query, elements = iteration.elements_of(codes)
    except UnpredictableOrderError:
        return  # it asks an iterator that was begun and cut before its first element, too
    found = zip(codes[query].tolist(), elements.tolist(), strict=True)
    assert sorted(found) == sorted(everywhere)


def check_random(
    num_cases: int, rng: random.Random, *, sharing: bool = False, filters: bool = False
) -> int:
    """Check random combinations; return how many of their passes have one order."""
    num_passes = 0
    for _ in range(num_cases):
        drawing = Drawing(random.Random(rng.random()), sharing=sharing, filters=filters)
        num_passes += check_pipeline(drawing.pipeline(), rng)
        add_cases()
    return num_passes
