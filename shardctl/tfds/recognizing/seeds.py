"""The seeds of a pipeline as TensorFlow's kernels have them, and as a script would state them."""

from __future__ import annotations

from collections.abc import Iterable

from shardctl.core.stages.fields import KernelPair
from shardctl.core.tfds_rules import DEFAULT_GRAPH_SEED, SEED_MODULUS
from shardctl.tfds.recognizing.graph import Operation


def kernel_pair(operation: Operation) -> KernelPair | None:
    """Return the two seeds of an operation's kernel, None where it takes them from the machine."""
    pair = operation.number("seed"), operation.number("seed2")
    return None if pair == (0, 0) else pair


def global_seed_of(pairs: Iterable[KernelPair]) -> int | None:
    """Return the global seed under which all pairs have one seed each, None without a global seed.

    Where they were made under several, it is None, and those of another one stay pairs.

    >>> global_seed_of([(3, 1), (3, 2)]), global_seed_of([(87654321, 1)])
    (3, None)
    """
    first = {seed for seed, _ in pairs}
    (only,) = first if len(first) == 1 else {DEFAULT_GRAPH_SEED}
    return only if only != DEFAULT_GRAPH_SEED and 0 <= only < SEED_MODULUS else None


def stated_seed(pair: KernelPair | None, global_seed: int | None) -> int | KernelPair | None:
    """Return the seed that a script states to get a pair; the pair itself where none does.

    >>> stated_seed((3, 7), 3), stated_seed((87654321, 7), None), stated_seed((87654321, 7), 3)
    (7, 7, (87654321, 7))
    >>> stated_seed((0, 2147483647), 0)
    0
    """
    if pair is None:
        return None
    seed, seed2 = pair
    if seed != (DEFAULT_GRAPH_SEED if global_seed is None else global_seed):
        return pair
    if (seed, seed2) == (0, SEED_MODULUS):
        return 0
    return seed2 if 0 <= seed2 < SEED_MODULUS else pair
