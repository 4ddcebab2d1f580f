"""Elements taken apart, to be compared."""

from __future__ import annotations

from shardctl.tfds.verifying.verify_dataset import Rows, steady_components


def test_rows_of_a_batch_are_alike_where_all_components_are() -> None:
    import tensorflow as tf

    batch = Rows.of(
        {"x": tf.constant([1.0, float("nan"), 1.0, 7.0]), "s": tf.constant(list("abac"))}
    )
    one, two, three, four = batch.rows(4)
    assert one == three
    assert two == batch.rows(4)[1]
    assert len({one, two, four}) == 3
    assert (
        batch.key != Rows.of({"x": tf.constant([1, 2, 1, 2]), "s": tf.constant(list("abac"))}).key
    )


def test_components_of_random_maps_are_found() -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(5).map(lambda x: (x, tf.random.uniform([]), x > 2))
    assert steady_components(dataset, 9) == (frozenset({0, 2}), 3)
