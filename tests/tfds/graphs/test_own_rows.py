"""Elements taken apart, to be compared."""

from __future__ import annotations

from shardctl.tfds.verifying.verify_dataset import key, parts_of, rows_of, steady_components


def test_rows_of_a_batch_are_alike_where_all_components_are() -> None:
    import tensorflow as tf

    names = tf.constant(list("abac"))
    batch = parts_of({"x": tf.constant([1.0, float("nan"), 1.0, 7.0]), "s": names})
    one, two, three, four = rows_of(batch, 4)
    assert one == three
    assert two == rows_of(batch, 4)[1]
    assert len({one, two, four}) == 3
    assert key(batch) != key(parts_of({"x": tf.constant([1, 2, 1, 2]), "s": names}))


def test_components_of_random_maps_are_found() -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(5).map(lambda x: (x, tf.random.uniform([]), x > 2))
    assert steady_components(dataset, 9) == (frozenset({0, 2}), 3)
