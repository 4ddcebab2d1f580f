"""Graphs of which only maps and batches are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shardctl.tfds.graphs.dataset_graph import DatasetGraph, NotRebuildable
from shardctl.tfds.graphs.gather import EditedGraph


def edited(dataset: Any) -> EditedGraph:
    return EditedGraph(graph=DatasetGraph(dataset))


def test_maps_and_batches_are_given_other_elements() -> None:
    import tensorflow as tf

    table = tf.constant([10, 20, 30], tf.int64)
    own = tf.data.Dataset.range(3).map(lambda x: table[x]).shuffle(3).repeat(7).batch(2).skip(1)
    graph = edited(own)

    def window(_: Any) -> Any:
        given = tf.data.Dataset.from_tensor_slices(tf.constant([2, 0, 0, 1, 2], tf.int64))
        return graph.applied([given], [])

    made = tf.data.Dataset.range(1).flat_map(window)
    assert [batch.tolist() for batch in made.as_numpy_iterator()] == [[30, 10], [10, 20], [30]]


def test_a_mixture_follows_its_choices() -> None:
    import tensorflow as tf

    parts = [tf.data.Dataset.range(9).map(lambda x, k=k: x + k).batch(k) for k in (2, 3)]
    graph = edited(tf.data.Dataset.sample_from_datasets(parts, seed=1))
    assert graph.full_widths.tolist() == [2, 3]
    leaves = np.array([1, 1, 1, 0, 0, 0, 0, 1, 1])
    choices = graph.choices(graph.merges[0], leaves)
    assert choices.tolist() == [1, 0, 0, 1]

    def window(_: Any) -> Any:
        given = [tf.data.Dataset.range(4), tf.data.Dataset.range(5)]
        return graph.applied(given, [tf.data.Dataset.from_tensor_slices(choices)])

    made = tf.data.Dataset.range(1).flat_map(window)
    assert [b.tolist() for b in made.as_numpy_iterator()] == [[3, 4, 5], [2, 3], [4, 5], [6, 7]]


def _reordered(ds: Any) -> Any:
    return ds.batch(2, drop_remainder=True).shuffle(3).batch(2)


def _changed(ds: Any) -> Any:
    return ds.batch(2).map(lambda x: x[::-1]).unbatch()


@pytest.mark.parametrize("of", [_reordered, _changed])
def test_what_cannot_be_made_of_examples_is_refused(of: Callable[[Any], Any]) -> None:
    import tensorflow as tf

    with pytest.raises(NotRebuildable, match="batches"):
        edited(of(tf.data.Dataset.range(9)))
