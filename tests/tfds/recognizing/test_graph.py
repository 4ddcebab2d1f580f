"""The graph of a dataset: operations, arguments by their names, functions."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.tfds.recognizing.graph import (
    NoConstantError,
    constant,
    num_rows,
    operation_of,
)


def test_operations_have_their_inputs_and_arguments() -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(9).shuffle(4, seed=1).batch(2, drop_remainder=True)
    batch = operation_of(dataset)
    assert [batch.op, batch.input.op, batch.input.input.op] == [
        "BatchDatasetV2",
        "ShuffleDatasetV3",
        "RangeDataset",
    ]
    assert (batch.number("batch_size"), batch.number("drop_remainder")) == (2, 1)
    shuffle = batch.input
    assert (shuffle.number("seed"), shuffle.number("seed2")) == (87654321, 1)
    assert shuffle.flag("reshuffle_each_iteration")


def test_one_object_has_one_name_and_a_name_of_the_script_is_none() -> None:
    import tensorflow as tf

    one = tf.data.Dataset.range(3)
    zipped = operation_of(tf.data.Dataset.zip((one, one, tf.data.Dataset.range(3))))
    first, second, third = (each.object_name for each in zipped.inputs)
    assert first == second != third
    named = operation_of(tf.data.Dataset.range(3, name="mine"))
    assert named.object_name is None


def test_constants_of_texts_and_numbers() -> None:
    import tensorflow as tf

    slices = operation_of(tf.data.Dataset.from_tensor_slices((["a", "bcd"], [4, 5])))
    texts, numbers = (constant(each) for each in slices.others)
    assert texts.tolist() == [b"a", b"bcd"]
    assert np.array_equal(numbers, [4, 5])
    assert num_rows(slices.others[0]) == 2


def test_what_is_no_constant_is_said() -> None:
    import tensorflow as tf

    take = operation_of(tf.data.Dataset.range(3).take(2))
    with pytest.raises(NoConstantError, match="seed of TakeDataset is no constant"):
        take.number("seed")


def test_functions_are_followed_behind_identities() -> None:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(3)
    same = operation_of(numbers.map(tf.identity)).function
    other = operation_of(numbers.map(lambda number: number + 0)).function
    swapped = tf.data.Dataset.zip((numbers, numbers)).map(lambda a, b: (b, a))
    turned = operation_of(swapped).function
    assert same is not None
    assert other is not None
    assert turned is not None
    assert (same.is_identity, other.is_identity, turned.is_identity) == (True, False, False)


def test_a_long_pipeline_is_no_deep_recursion() -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(3)
    for _ in range(300):
        dataset = dataset.skip(0)
    operation, depth = operation_of(dataset), 0
    while operation.inputs:
        operation, depth = operation.input, depth + 1
    assert depth == 300


def test_what_has_no_graph_is_refused() -> None:
    import tensorflow as tf

    copied = tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device("/cpu:0"))
    with pytest.raises(UsageError, match="inspect the dataset before that stage"):
        operation_of(copied)
