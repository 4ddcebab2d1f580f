"""Records as they lie in TFDS's files, and the shuffle that takes any seeds."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.core.shuffle.seeds import shuffle_kernel_seeds
from shardctl.tfds.training.records import kernel_shuffle
from tests.core.shuffle.shuffle_oracles import tf_order


@pytest.mark.parametrize(("num_elements", "buffer_size"), [(0, 3), (20, 1), (20, 7), (20, 99)])
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2])
def test_the_seeds_of_the_kernel_give_the_order_of_the_seed_of_a_shuffle(
    tf: Any, num_elements: int, buffer_size: int, seed: int
) -> None:
    seeds = shuffle_kernel_seeds(seed, None)
    pair = tf.constant([seeds.seed, seeds.seed2], tf.int64)
    shuffled = kernel_shuffle(tf.data.Dataset.range(num_elements), buffer_size, pair)
    expected = tf_order(num_elements, buffer_size, seed)
    for _ in range(2):  # every iterator has the same order
        assert [int(x) for x in shuffled] == expected


def test_elements_of_several_parts_are_shuffled_as_one(tf: Any) -> None:
    numbers = tf.data.Dataset.range(20)
    pairs = tf.data.Dataset.zip((numbers, {"name": numbers.map(tf.strings.as_string)}))
    shuffled = kernel_shuffle(pairs, 7, tf.constant([3, 5], tf.int64))
    assert shuffled.element_spec == pairs.element_spec
    found = [
        (int(number), named["name"].decode()) for number, named in shuffled.as_numpy_iterator()
    ]
    assert sorted(found) == [(i, str(i)) for i in range(20)]
    assert found != sorted(found)
    assert all(name == str(number) for number, name in found)
