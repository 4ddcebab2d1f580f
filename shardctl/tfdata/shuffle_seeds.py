"""Shuffle seeds: from the seeds a user sets to the two that TensorFlow's kernel draws from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arguments import Whole
from shardctl.base.tfds_rules import (
    DEFAULT_GRAPH_SEED,
    MAX_ITERATORS,
    SEED_MODULUS,
    SEEDS_PER_ITERATOR,
)
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.tfdata.philox import philox_samples


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelSeeds:
    """The two 64-bit seeds of one Philox stream, as the shuffle kernel takes them."""

    seed: Whole
    seed2: Whole

    def __post_init__(self) -> None:
        for name, value in (("seed", self.seed), ("seed2", self.seed2)):
            if not 0 <= value < 1 << 64:
                raise UsageError(f"{name} {value} of a kernel: it is from 0 to 2**64 - 1")


def shuffle_kernel_seeds(
    op_seed: int | None, global_seed: int | None, *, op_index: int = 0
) -> KernelSeeds:
    """Return the seeds that `shuffle(seed=op_seed)` gets when the dataset is built.

    `global_seed` is that of `tf.random.set_seed`, which counts even with an explicit op seed.
    Both are ints of any size and taken modulo 2**31 - 1, so 2147483647 is the same seed as 0
    (tensorflow/python/framework/random_seed.py and data/util/random_seed.py).

    Without an op seed TensorFlow draws one from the global seed: `op_index` says how many ops
    without a seed, `tf.random.uniform` among them, were built eagerly since `set_seed`.

    >>> shuffle_kernel_seeds(-1, None)
    KernelSeeds(seed=87654321, seed2=2147483646)
    >>> shuffle_kernel_seeds(0, 0)
    KernelSeeds(seed=0, seed2=2147483647)

    Raises:
        UnpredictableOrderError: neither seed is set.
        UsageError: `op_index` is below 0.
    """
    if op_seed is None:
        op_seed = _drawn_op_seed(global_seed, op_index)
    seed = DEFAULT_GRAPH_SEED if global_seed is None else index(global_seed) % SEED_MODULUS
    seed2 = index(op_seed) % SEED_MODULUS
    # Two zeros would tell the kernel to take its seeds from the machine.
    return KernelSeeds(seed=seed, seed2=seed2 if seed or seed2 else SEED_MODULUS)


def seeds_of_iterator(kernel: KernelSeeds, iterator_index: int) -> KernelSeeds:
    """Return the pair of seeds of an iterator of a shuffle that reshuffles, from its kernel's.

    It takes two samples of a stream with the kernel seeds: iterator e draws from samples 2e and
    2e + 1, the first iterator among them (RandomSeedGenerator in
    tensorflow/core/kernels/data/random_seed_ops.cc). Without reshuffling each iterator draws from
    the kernel seeds themselves.

    >>> seeds_of_iterator(shuffle_kernel_seeds(7, None), 0)
    KernelSeeds(seed=1992159687, seed2=3200305987)

    Raises:
        UsageError: there are more iterators than TensorFlow counts.
    """
    ((seed, seed2),) = seeds_of_iterators(
        kernel, range(iterator_index, iterator_index + 1)
    ).tolist()
    return KernelSeeds(seed=seed, seed2=seed2)


def seeds_of_iterators(kernel: KernelSeeds, iterators: range) -> NDArray[np.uint64]:
    """Return `seeds_of_iterator` of many, uint64[n, 2]; `iterators` count on one by one.

    >>> seeds_of_iterators(KernelSeeds(seed=87654321, seed2=7), range(0, 1)).tolist()
    [[1992159687, 3200305987]]

    Raises:
        UsageError: there are more iterators than TensorFlow counts.
    """
    if len(iterators) and iterators[-1] >= MAX_ITERATORS:
        raise UsageError(
            f"iterator {iterators[-1]} of a shuffle: TensorFlow counts them up to "
            f"{MAX_ITERATORS - 1}; a lower --pass is needed"
        )
    start, count = SEEDS_PER_ITERATOR * iterators.start, SEEDS_PER_ITERATOR * len(iterators)
    samples = philox_samples(kernel.seed, kernel.seed2, start, count)
    return samples.reshape(-1, SEEDS_PER_ITERATOR).astype(np.uint64)


def _drawn_op_seed(global_seed: int | None, op_index: int) -> int:
    if global_seed is None:
        raise UnpredictableOrderError(
            "a shuffle without a seed has another order in each run: "
            "set its seed, or tf.random.set_seed"
        )
    if op_index < 0:
        raise UsageError(f"op_index {op_index}: ops without a seed count from 0")
    # tensorflow/python/eager/context.py draws op seeds with Python's own generator.
    generator = random.Random(index(global_seed))  # noqa: S311 - TensorFlow's choice, no secret
    for _ in range(op_index):
        generator.randint(0, SEED_MODULUS)
    return generator.randint(0, SEED_MODULUS)
