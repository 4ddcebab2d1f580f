"""Mixtures: TensorFlow's logarithms of weights and its choices, at any place of the sequence."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.tfdata.mixture import (
    BLOCK,
    MixtureSchedule,
    SampledChoices,
    WeightsDtype,
    _logs_of_eigen,
    _logs_of_glibc,
    cumulative_of,
    uniform_cumulative,
    weights_of_logits,
)
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from tests.cases import FUZZ, add_cases, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_evaluated

NASTY = [1e-30, 1 / 3, 0.1, 0.7, 1.0, 0.5, 2 / 3, 3e38, 1.2e-38, 0.70710677, 0.70710683]
TINY = [1e-46, 1e-60]  # 0 in float32


def _totals_by_tensorflow(weights: list[float], dtype: str) -> list[float]:
    import tensorflow as tf

    logits = tf.math.log(tf.constant(weights, dtype)).numpy()
    finite = np.isfinite(logits)
    shares = np.where(finite, np.exp(logits.astype(float) - float(logits[finite].max())), 0)
    totals: list[float] = np.cumsum(shares).tolist()
    return totals


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_totals_are_made_of_tensorflows_logarithms(dtype: WeightsDtype) -> None:
    rng = random.Random(0)
    for case in range(300):
        count = rng.randrange(1, 20)
        among = [NASTY, NASTY + TINY, [rng.random() for _ in range(9)]][case % 3]
        weights = [rng.choice(among) * rng.choice([1, 1, rng.random()]) for _ in range(count)]
        rounded = np.array(weights, dtype)
        if not any(rounded > 1e-37) or any((rounded > 0) & (rounded < 1.2e-38)):
            continue
        totals = cumulative_of(weights, dtype)
        expected = _totals_by_tensorflow(weights, dtype)
        if dtype == "float32":
            assert totals.tolist() == expected, weights
        else:
            np.testing.assert_allclose(totals, expected, rtol=0, atol=2e-14 * totals[-1])
        add_cases()


def test_every_mantissa_has_tensorflows_logarithm_alone_and_in_a_group_of_eight() -> None:
    import tensorflow as tf

    bits = np.random.default_rng(0).integers(0x00800000, 0x7F800000, 80_000).astype(np.int32)
    weights = bits.view(np.float32)
    in_groups = tf.math.log(weights).numpy()
    assert _logs_of_eigen(weights).tobytes() == in_groups.tobytes()
    sevens = [weights[at : at + 7] for at in range(0, 7 * 2000, 7)]
    alone = np.concatenate([tf.math.log(seven).numpy() for seven in sevens])
    assert _logs_of_glibc(np.concatenate(sevens)).tobytes() == alone.tobytes()
    add_cases(len(in_groups) + len(alone))


def test_what_is_chosen_and_what_is_refused() -> None:
    def totals(weights: list[float], dtype: WeightsDtype) -> list[str]:
        return [f"{total:.12g}" for total in cumulative_of(weights, dtype)]

    assert_evaluated(globals(), "weights", totals)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9])
def test_weights_of_logarithms_choose_alike(count: int) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(count)
    for weights in (rng.random(count), rng.integers(1, 100, count) / 100):
        logits = tf.math.log(weights.astype(np.float32)).numpy()
        again = tf.math.log(tf.constant(weights_of_logits(logits), tf.float32)).numpy()
        assert again.tobytes() == logits.tobytes()
        add_cases()
    weights_ = [0.7, 0.05, 0.25]  # of two digits come back as they were
    assert weights_of_logits(tf.math.log(weights_).numpy()) == tuple(weights_)
    assert weights_of_logits(np.array([0.0, -np.inf], np.float32)) == (1.0, 0.0)


# Choices.


def _choices(weights: list[float] | None, count: int, seed: int, dtype: Any) -> SampledChoices:
    totals = uniform_cumulative(count) if weights is None else cumulative_of(weights, dtype)
    return SampledChoices(seeds=shuffle_kernel_seeds(seed, None), cumulative=totals)


def _compare(num_cases: int, rng: random.Random, length: int) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset
    for case in range(num_cases):
        count = rng.choice([2, 3, 8, 17])
        weights = [rng.choice([1 / 3, 1e-30, 1e-3, rng.random() + 0.01]) for _ in range(count)]
        weights[0] = 1.0
        given = None if case % 5 == 0 else weights
        seed = rng.choice([0, 1, -1, 2**31 - 1, rng.randrange(2**63)])
        dtype = rng.choice(["float32", "float64"])
        theirs: Any = np.array(weights) if given is not None and dtype == "float64" else given
        inputs = [dataset.from_tensors(np.int64(number)).repeat() for number in range(count)]
        mixture = dataset.sample_from_datasets(inputs, theirs, seed=seed).batch(length)
        expected = next(iter(mixture.as_numpy_iterator())).tolist()
        assert _choices(given, count, seed, dtype).between(0, length).tolist() == expected
        add_cases()


@fuzzed(6, FUZZ // 20)
def test_choices_are_those_of_tensorflow(num_cases: int) -> None:
    _compare(num_cases, random_of_a_fuzz_run() if num_cases > 6 else random.Random(0), 300)


def test_any_part_of_the_choices_costs_only_itself() -> None:
    choices = _choices([0.2, 0.5, 0.3], 3, 7, "float32")
    whole = choices.between(0, 200_000)
    assert np.abs(np.bincount(whole) / 200_000 - [0.2, 0.5, 0.3]).max() < 0.005
    for start, stop in ((0, 0), (1, 2), (16_383, 16_385), (40_000, 60_000)):
        assert choices.between(start, stop).tolist() == whole[start:stop].tolist()
    far = choices.between(10**15, 10**15 + 3)
    assert far.tolist() == choices.between(10**15 - 5, 10**15 + 5)[5:8].tolist()


# Any place of a mixture against the whole of it, over many checkpoints.


def _played(
    choices: Int64s, lengths: list[int], steps: random.Random
) -> tuple[MixtureSchedule, Int64s]:
    """Return turns over all choices in random steps, and (input, place) of each element."""
    turns = MixtureSchedule(lambda start, stop: choices[start:stop], len(lengths))
    pulled, elements = [0] * len(lengths), []
    ended = [False] * len(lengths)
    while turns.num_choices < len(choices):
        part = turns.next_choices(steps.choice([1, 70, BLOCK]))
        counts, used = np.zeros(len(lengths), np.int64), 0
        for number in part.tolist():
            if not ended[number] and pulled[number] == lengths[number]:
                break
            if not ended[number]:
                elements.append((number, pulled[number]))
                pulled[number] += 1
                counts[number] += 1
            used += 1
        turns.record(used, counts)
        if used < len(part):
            turns.end(int(part[used]))
            ended[int(part[used])] = True
            turns.record(1, np.zeros(len(lengths), np.int64))
    return turns, np.array(elements)


@pytest.mark.long
def test_every_place_is_that_of_the_whole() -> None:
    rng = random.Random(0)
    for lengths in ([10**9] * 3, [50_000, 10**9, 3, 0], [100_000, 90_000]):
        choices = np.random.default_rng(0).integers(0, len(lengths), 4 * BLOCK + 77)
        turns, expected = _played(choices, lengths, rng)
        assert (turns.num_elements, turns.num_choices) == (len(expected), len(choices))
        elements = np.random.default_rng(1).integers(0, len(expected), 500)
        numbers, places = turns.of(elements)
        assert np.stack((numbers, places), 1).tolist() == expected[elements].tolist()
        for number in range(len(lengths)):
            mine = np.flatnonzero(expected[:, 0] == number)
            some = np.arange(0, len(mine), 1 + len(mine) // 50)
            assert turns.elements(number, some).tolist() == mine[some].tolist()
        add_cases(len(elements))
