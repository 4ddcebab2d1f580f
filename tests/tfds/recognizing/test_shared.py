"""Dataset objects that are used by several others."""

from __future__ import annotations

from shardctl.tfds.recognizing.graph import operation_of
from shardctl.tfds.recognizing.walk import shared_objects


def test_what_reshuffles_or_is_cached_and_used_twice_is_shared() -> None:
    import tensorflow as tf

    sets = tf.data.Dataset
    numbers = sets.range(5)
    shuffled = numbers.shuffle(3, seed=1)
    zipped = operation_of(sets.zip((shuffled, shuffled.skip(1), numbers)))
    assert shared_objects(zipped) == {zipped.inputs[0].object_name: "a"}
    cached = numbers.cache()
    assert len(shared_objects(operation_of(cached.concatenate(cached)))) == 1


def test_what_has_no_state_or_is_used_by_one_that_is_shared_is_not() -> None:
    import tensorflow as tf

    sets = tf.data.Dataset
    numbers = sets.range(5)
    fixed = numbers.shuffle(3, seed=1, reshuffle_each_iteration=False)
    assert shared_objects(operation_of(sets.zip((fixed, fixed)))) == {}
    batched = numbers.shuffle(3, seed=1).batch(2)
    zipped = operation_of(sets.zip((batched, batched)))
    assert shared_objects(zipped) == {zipped.inputs[0].object_name: "a"}
    assert shared_objects(operation_of(numbers.shuffle(3).batch(2))) == {}
