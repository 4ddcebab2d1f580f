"""Choices: those of TensorFlow, at any place of the sequence."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.tfdata.mixture import SampledChoices, cumulative_of, uniform_cumulative
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run


def _choices(weights: list[float] | None, count: int, seed: int, dtype: Any) -> SampledChoices:
    totals = uniform_cumulative(count) if weights is None else cumulative_of(weights, dtype)
    return SampledChoices(seeds=shuffle_kernel_seeds(seed, None), cumulative=totals)


def _by_tensorflow(
    weights: list[float] | None, count: int, seed: int, dtype: str, length: int
) -> Int64s:
    import tensorflow as tf

    dataset = tf.data.Dataset
    given: Any = np.array(weights) if weights is not None and dtype == "float64" else weights
    inputs = [dataset.from_tensors(np.int64(number)).repeat() for number in range(count)]
    mixture = dataset.sample_from_datasets(inputs, given, seed=seed).batch(length)
    return next(iter(mixture.as_numpy_iterator()))


def _compare(num_cases: int, rng: random.Random, length: int) -> None:
    for case in range(num_cases):
        count = rng.choice([2, 3, 5, 8, 17, 40])
        weights = [rng.choice([1 / 3, 1e-30, 1e-3, rng.random() + 0.01]) for _ in range(count)]
        weights[0] = 1.0
        given = None if case % 5 == 0 else weights
        seed = rng.choice([0, 1, -1, 2**31 - 1, rng.randrange(2**63)])
        dtype = rng.choice(["float32", "float64"])
        ours = _choices(given, count, seed, dtype).between(0, length)
        assert ours.tolist() == _by_tensorflow(given, count, seed, dtype, length).tolist()
        add_cases()


def test_choices_are_those_of_tensorflow() -> None:
    _compare(12, random.Random(0), 300)


@pytest.mark.fuzz
def test_many_choices_are_those_of_tensorflow() -> None:
    _compare(FUZZ // 20, random_of_a_fuzz_run(), 20_000)


def test_any_part_costs_only_itself() -> None:
    choices = _choices([0.2, 0.5, 0.3], 3, 7, "float32")
    whole = choices.between(0, 60_000)
    for start, stop in ((0, 0), (1, 2), (16_383, 16_385), (40_000, 60_000)):
        assert choices.between(start, stop).tolist() == whole[start:stop].tolist()
    far = choices.between(10**15, 10**15 + 3)
    assert far.tolist() == choices.between(10**15 - 5, 10**15 + 5)[5:8].tolist()


def test_an_input_is_chosen_as_often_as_its_weight_says() -> None:
    counts = np.bincount(_choices([0.5, 0.3, 0.2], 3, 1, "float32").between(0, 200_000))
    assert np.abs(counts / 200_000 - [0.5, 0.3, 0.2]).max() < 0.005
