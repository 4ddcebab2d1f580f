"""Selectors of mixtures, as TensorFlow makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.tfds.recognizing.graph import constant, operation_of
from shardctl.tfds.recognizing.walk import (
    Sampling,
    chosen_values,
    sampling,
)


def _selector(weights: Any, seed: int = 4, **more: Any) -> Any:
    import tensorflow as tf

    inputs = [tf.data.Dataset.range(3) for _ in range(3)]
    mixed = tf.data.Dataset.sample_from_datasets(inputs, weights=weights, seed=seed, **more)
    return operation_of(mixed).inputs[0]


def test_weights_and_seeds_are_found() -> None:
    assert sampling(_selector([0.5, 0.3, 0.2]), 3) == Sampling(
        weights=(0.5, 0.3, 0.2), weights_dtype="float32", seed=(87654321, 4), rerandomize=None
    )
    assert sampling(_selector(None), 3) == Sampling(
        weights=None, weights_dtype="float32", seed=(87654321, 4), rerandomize=None
    )
    again = sampling(_selector([1.0, 2.0, 3.0], rerandomize_each_iteration=True), 3)
    assert again is not None
    assert again.rerandomize is True


def test_what_is_no_draw_is_none() -> None:
    import tensorflow as tf

    assert sampling(operation_of(tf.data.Dataset.range(3)), 3) is None
    assert sampling(operation_of(tf.data.Dataset.range(3).map(lambda n: n % 2)), 3) is None
    assert sampling(_selector([0.5, 0.3, 0.2]), 2) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_weights_have_exactly_the_logits(kind: type) -> None:
    import tensorflow as tf

    generator = np.random.default_rng(1)
    weights = np.concatenate([generator.random(6), 10.0 ** generator.integers(-9, 9, 5)])
    inputs = [tf.data.Dataset.range(3) for _ in weights]
    mixed = tf.data.Dataset.sample_from_datasets(inputs, weights=weights.astype(kind), seed=1)
    selector = operation_of(mixed).inputs[0]
    found = sampling(selector, len(weights))
    assert found is not None
    assert found.weights_dtype == kind.__name__
    again = tf.math.log(tf.constant(found.weights, kind)).numpy()
    tolerance = 0.0 if kind is np.float32 else 1e-15  # one choice in 1e15
    np.testing.assert_allclose(again, constant(selector.others[0])[0], rtol=tolerance)


def test_values_of_choices() -> None:
    import tensorflow as tf

    sets = tf.data.Dataset
    assert list(chosen_values(operation_of(sets.range(3, 9, 2))) or ()) == [3, 5, 7]
    assert chosen_values(operation_of(sets.range(1 << 60))) == range(1 << 60)
    values = sets.from_tensor_slices(np.array([1, 0, 2], np.int64))
    assert chosen_values(operation_of(values)) == (1, 0, 2)
    assert chosen_values(operation_of(sets.from_tensors(np.int64(2)))) == (2,)
    assert chosen_values(operation_of(sets.from_tensor_slices([0.5]))) is None
    assert chosen_values(operation_of(sets.range(3).repeat())) is None
