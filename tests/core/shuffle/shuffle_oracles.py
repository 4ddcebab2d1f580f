"""What TensorFlow's own shuffles hand out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shardctl.core.shuffle.seeds import KernelSeeds, seeds_of_iterator, shuffle_kernel_seeds

EDGE_SEEDS = [0, 1, -1, 2**31 - 2, 2**31 - 1, 2**31, 1 - 2**31, 2 * (2**31 - 1), 7 * (2**31 - 1)]
EDGE_SEEDS += [2**32, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -(10**31), 10**400]


@contextmanager
def global_seed(seed: int | None) -> Iterator[None]:
    """Set TensorFlow's global seed for a while."""
    import tensorflow as tf

    tf.random.set_seed(seed)
    try:
        yield
    finally:
        tf.random.set_seed(None)


def tf_order(
    num_elements: int,
    buffer_size: int,
    op_seed: int | None,
    *,
    reshuffle: bool | None = False,
    iterator_index: int = 0,
    stop: int | None = None,
) -> list[int]:
    """Return what iterator `iterator_index` of a shuffled range hands out."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(num_elements).shuffle(
        buffer_size, seed=op_seed, reshuffle_each_iteration=reshuffle
    )
    if stop is not None:
        dataset = dataset.take(stop)
    dataset = dataset.batch(min(max(num_elements, 1), 1 << 16))
    for _ in range(iterator_index):
        iter(dataset)
    return [element for batch in dataset for element in batch.numpy().tolist()]


def iterator_seeds(
    op_seed: int | None,
    global_seed: int | None,
    reshuffle: bool | None,
    iterator_index: int,
    *,
    op_index: int = 0,
) -> KernelSeeds:
    """Return the seeds that an iterator of a shuffle draws from."""
    kernel = shuffle_kernel_seeds(op_seed, global_seed, op_index=op_index)
    return kernel if reshuffle is False else seeds_of_iterator(kernel, iterator_index)
