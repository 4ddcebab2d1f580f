"""Graphs of dataset objects as trees, and what their functions hold."""

from __future__ import annotations

from shardctl.tfds.graphs.dataset_graph import DatasetGraph


def test_a_pipeline_is_a_tree_of_what_its_nodes_do() -> None:
    import tensorflow as tf

    one = tf.data.Dataset.range(9).map(lambda x: x + 1).shuffle(4, seed=1)
    mixed = tf.data.Dataset.sample_from_datasets([one, one.take(2)], seed=3).batch(5)
    graph = DatasetGraph(mixed.concatenate(one.batch(2)))
    kinds = [node.kind for node in graph.root.walk()]
    branch = ["order", "kept", "leaf"]
    assert kinds == ["merged", "batch", "merged", *branch, "order", *branch, "batch", *branch]
    assert [leaf.leaf for leaf in graph.root.leaves] == [0, 1, 2]
    assert [node.size for node in graph.root.walk() if node.kind == "batch"] == [5, 2]
    assert list(graph.buffer_sizes()) == [4, 4, 4]


def test_ops_are_found_in_functions_that_functions_call() -> None:
    import tensorflow as tf

    def drawn(x: tf.Tensor) -> tf.Tensor:
        return tf.cond(x > 3, lambda: tf.random.uniform([]), lambda: 0.0)

    graph = DatasetGraph(tf.data.Dataset.range(9).map(drawn))
    assert "RandomUniform" in graph.ops_in_functions(graph.root.node)
    assert not graph.is_identity(graph.root.node)
