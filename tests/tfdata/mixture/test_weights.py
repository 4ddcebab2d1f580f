"""Weights: the logarithms of TensorFlow, bit for bit, and what is never chosen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.tfdata.mixture import (
    WeightsDtype,
    cumulative_of,
    uniform_cumulative,
    weights_of_logits,
)
from tests.cases import add_cases

NASTY = [1e-30, 1 / 3, 0.1, 0.7, 1.0, 0.5, 2 / 3, 3e38, 1.2e-38, 0.70710677, 0.70710683]
# 0 in float32.
TINY = [1e-46, 1e-60]


def _totals_by_tensorflow(weights: list[float], dtype: str) -> list[float]:
    import tensorflow as tf

    logits = tf.math.log(tf.constant(weights, dtype)).numpy()
    finite = np.isfinite(logits)
    shares = np.where(finite, np.exp(logits.astype(float) - float(logits[finite].max())), 0)
    totals: list[float] = np.cumsum(shares).tolist()
    return totals


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_totals_are_made_of_tensorflows_logarithms(dtype: str) -> None:
    rng = random.Random(0)
    for case in range(600):
        count = rng.randrange(1, 20)
        among = [NASTY, NASTY + TINY, [rng.random() for _ in range(9)]][case % 3]
        weights = [rng.choice(among) * rng.choice([1, 1, rng.random()]) for _ in range(count)]
        rounded = np.array(weights, dtype)
        if not any(rounded > 1e-37) or any((rounded > 0) & (rounded < 1.2e-38)):
            continue
        totals = cumulative_of(weights, dtype)  # type: ignore[arg-type]
        expected = _totals_by_tensorflow(weights, dtype)
        if dtype == "float32":
            assert totals.tolist() == expected, weights
        else:
            np.testing.assert_allclose(totals, expected, rtol=0, atol=2e-14 * totals[-1])
        add_cases()


def test_every_mantissa_has_tensorflows_logarithm_alone_and_in_a_group_of_eight() -> None:
    import tensorflow as tf

    from shardctl.tfdata.mixture import _logs_of_eigen, _logs_of_glibc

    bits = np.random.default_rng(0).integers(0x00800000, 0x7F800000, 80_000).astype(np.int32)
    weights = bits.view(np.float32)
    in_groups = tf.math.log(weights).numpy()
    assert _logs_of_eigen(weights).tobytes() == in_groups.tobytes()
    alone = np.concatenate(
        [tf.math.log(weights[at : at + 7]).numpy() for at in range(0, 7 * 3000, 7)]
    )
    assert _logs_of_glibc(weights[: 7 * 3000]).tobytes() == alone.tobytes()
    add_cases(len(in_groups) + len(alone))


def test_a_weight_that_rounds_to_0_is_never_chosen() -> None:
    assert cumulative_of([1e-60, 1.0, 1e-60]).tolist() == [0.0, 1.0, 1.0]
    assert cumulative_of([1e-60, 1.0], "float64")[0] > 0


@pytest.mark.parametrize(("weight", "dtype"), [(1e-39, "float32"), (1e-310, "float64")])
def test_a_weight_that_versions_take_as_0_or_not_is_refused(
    weight: float, dtype: WeightsDtype
) -> None:
    """Alone in TensorFlow 2.20 its logarithm is -inf, in 2.21 -103.97, in a group -inf in both."""
    with pytest.raises(UsageError, match=rf"below .*e-3.* in {dtype} is 0 to some versions"):
        cumulative_of([1.0, weight], dtype)
    assert len(cumulative_of([1.0, float(np.finfo(dtype).tiny)], dtype)) == 2


def test_an_infinite_weight_is_never_chosen() -> None:
    assert cumulative_of([float("inf"), 1.0]).tolist() == [0.0, 1.0]


def test_a_weight_beyond_float32_is_refused_as_tensorflow_does() -> None:
    import tensorflow as tf

    with pytest.raises(UsageError, match="float32 ends at"):
        cumulative_of([1e39, 1.0])
    with pytest.raises(ValueError, match="out of range"):
        tf.constant([1e39, 1.0])
    assert cumulative_of([1e39, 1.0], "float64").tolist() == [1.0, 1.0]


def test_nothing_that_can_be_chosen_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to choose"):
        cumulative_of([1e-60, 1e-60])


def test_without_weights_all_inputs_are_alike() -> None:
    assert uniform_cumulative(3).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17])
def test_weights_of_logarithms_choose_alike(count: int) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(count)
    for weights in (rng.random(count), rng.integers(1, 100, count) / 100):
        logits = tf.math.log(weights.astype(np.float32)).numpy()
        found = weights_of_logits(logits)
        again = tf.math.log(tf.constant(found, tf.float32)).numpy()
        assert again.tobytes() == logits.tobytes()
        add_cases()


def test_weights_of_two_digits_come_back_as_they_were() -> None:
    import tensorflow as tf

    weights = [0.7, 0.05, 0.25]
    assert weights_of_logits(tf.math.log(weights).numpy()) == tuple(weights)


def test_logarithms_of_zero_are_weights_of_zero() -> None:
    assert weights_of_logits(np.array([0.0, -np.inf], np.float32)) == (1.0, 0.0)
