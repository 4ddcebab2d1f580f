"""Seeds as kernels have them, and as scripts state them, beside TensorFlow."""

from __future__ import annotations

import pytest

from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.recognizing.graph import operation_of
from shardctl.tfds.recognizing.stage_of import global_seed_of, kernel_pair, stated_seed


@pytest.mark.parametrize("global_seed", [None, 0, 5, 87654321])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 2])
def test_a_stated_seed_gives_the_pair_that_it_was_made_of(
    seed: int, global_seed: int | None
) -> None:
    kernel = shuffle_kernel_seeds(seed, global_seed)
    pair = (kernel.seed, kernel.seed2)
    found = global_seed_of([pair])
    assert found == (None if global_seed == 87654321 else global_seed)
    assert stated_seed(pair, found) == seed


def test_pairs_of_several_global_seeds_stay_pairs() -> None:
    assert global_seed_of([(3, 1), (4, 1)]) is None
    assert global_seed_of([]) is None
    assert stated_seed((3, 1), None) == (3, 1)
    assert stated_seed((87654321, 2**33), None) == (87654321, 2**33)
    assert stated_seed(None, 3) is None


def test_the_pair_of_a_shuffle_without_seeds_is_none() -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context

    context.context()._seed = None
    numbers = tf.data.Dataset.range(3)
    assert kernel_pair(operation_of(numbers.shuffle(2))) is None
    assert kernel_pair(operation_of(numbers.shuffle(2, seed=0))) == (87654321, 0)
