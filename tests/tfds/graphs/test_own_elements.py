"""Dataset objects beside the order that is predicted of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.inspecting.inspect import inspect
from tests.tfds_datasets import build_dataset


def test_what_maps_keep_beside_examples_is_named(tmp_path: Path) -> None:
    import numpy as np
    import tensorflow as tf

    counter = tf.Variable(0)
    maps = {
        "": lambda x: x + tf.random.stateless_uniform([], [1, 2], maxval=9, dtype=tf.int64),
        "random numbers": lambda x: x + tf.random.uniform([], maxval=9, dtype=tf.int64),
        "variables": lambda x: x + tf.cast(counter.assign_add(1), tf.int64),
        "Python": lambda x: tf.numpy_function(lambda y: np.int64(y + 1), [x], tf.int64),
    }
    for said, function in maps.items():
        dataset = tf.data.Dataset.range(3).map(function)
        own = OwnElements.of(dataset, inspect(dataset), 0)
        found = list(own.state_warnings())
        assert len(found) == bool(said)
        assert said in "".join(found)


def test_the_number_before_an_element_is_found_by_halving(tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(10).batch(4).repeat(3)
    own = OwnElements.of(dataset, inspect(dataset), 0)
    before = [own.elements.num_examples_before(element) for element in range(10)]
    assert before == [0, 4, 8, 10, 14, 18, 20, 24, 28, 30]


def test_what_counts_elements_is_not_made_of_examples(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    folder = build_dataset(tmp_path)
    dataset = tfds.builder_from_directory(folder).as_dataset(split="train").enumerate()
    own = OwnElements.of(dataset, inspect(dataset), 0)
    with pytest.raises(NotRebuildable):
        own.made()
