"""Seeds of shuffles: from those that a user sets to the pair that each iterator draws from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arguments import Whole
from shardctl.base.tfds_rules import (
    DEFAULT_GRAPH_SEED,
    KERAS_UNREAD_ITERATORS,
    MAX_ITERATORS,
    SEED_MODULUS,
    SEEDS_PER_ITERATOR,
    Loop,
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


def shuffle_kernel_seeds(op_seed: int, global_seed: int | None) -> KernelSeeds:
    """Return the seeds that `shuffle(seed=op_seed)` gets when the dataset is built.

    `global_seed` is that of `tf.random.set_seed`, which counts even with an explicit op seed.
    Both are ints of any size and taken modulo 2**31 - 1, so 2147483647 is the same seed as 0
    (tensorflow/python/framework/random_seed.py and data/util/random_seed.py).

    >>> shuffle_kernel_seeds(-1, None)
    KernelSeeds(seed=87654321, seed2=2147483646)
    >>> shuffle_kernel_seeds(0, 0)
    KernelSeeds(seed=0, seed2=2147483647)
    """
    seed = DEFAULT_GRAPH_SEED if global_seed is None else index(global_seed) % SEED_MODULUS
    seed2 = index(op_seed) % SEED_MODULUS
    # Two zeros would tell the kernel to take its seeds from the machine.
    return KernelSeeds(seed=seed, seed2=seed2 if seed or seed2 else SEED_MODULUS)


# Seed generators: which pair of seeds each iterator of a shuffle takes.


class SeedGenerator:
    """What gives each iterator of one shuffle its seeds, for as long as the dataset object lives.

    kernel: the seeds of the shuffle's kernel; None are those of the machine, other ones in each
        run.
    reshuffle: `reshuffle_each_iteration`; where it is False all iterators get the kernel's seeds.
    stage: the stage as a script writes it, for refusals.

    >>> generator = SeedGenerator(KernelSeeds(seed=87654321, seed2=7), None, stage="shuffle(10)")
    >>> generator.take().seeds
    KernelSeeds(seed=1992159687, seed2=3200305987)
    >>> generator.state
    1
    """

    def __init__(self, kernel: KernelSeeds | None, reshuffle: bool | None, *, stage: str) -> None:
        self.kernel, self.reshuffles, self.stage = kernel, reshuffle is not False, stage
        self.num_taken = 0
        self.is_uncertain = False

    @property
    def state(self) -> int:
        return self.num_taken if self.reshuffles else 0

    def make_uncertain(self) -> None:
        """Say that threads may have taken pairs, or not: who takes a further one cannot know it."""
        self.is_uncertain = True

    @property
    def is_fixed(self) -> bool:
        """Whether all iterators get the same seeds."""
        return not self.reshuffles

    def seeds_of(self, index: int) -> KernelSeeds:
        """Return the seeds of an iterator, by how many of the shuffle were made before it.

        Raises:
            UnpredictableOrderError: they depend on the machine.
            UsageError: there are more iterators than TensorFlow counts.
        """
        ((seed, seed2),) = self.seeds_of_several(range(index, index + 1)).tolist()
        return KernelSeeds(seed=seed, seed2=seed2)

    def seeds_of_several(self, iterators: range) -> NDArray[np.uint64]:
        """Return `seeds_of` of many, uint64[n, 2]; `iterators` count on one by one.

        An iterator takes two samples of a stream with the kernel seeds: iterator e draws from
        samples 2e and 2e + 1, the first iterator among them (RandomSeedGenerator in
        tensorflow/core/kernels/data/random_seed_ops.cc). Without reshuffling each iterator draws
        from the kernel seeds themselves.

        Raises:
            UnpredictableOrderError, UsageError: as for one.
        """
        kernel, count = self.kernel, len(iterators)
        if kernel is None:
            raise UnpredictableOrderError(
                f"{self.stage} has no seed and so another order in each run: set its seed, or "
                "tf.random.set_seed"
            )
        if not self.reshuffles:
            return np.full((count, 2), (kernel.seed, kernel.seed2), np.uint64)
        if count and iterators[-1] >= MAX_ITERATORS:
            raise UsageError(
                f"iterator {iterators[-1]} of a shuffle: TensorFlow counts them up to "
                f"{MAX_ITERATORS - 1}; a lower --pass-index is needed"
            )
        start, count = SEEDS_PER_ITERATOR * iterators.start, SEEDS_PER_ITERATOR * count
        samples = philox_samples(kernel.seed, kernel.seed2, start, count)
        return samples.reshape(-1, SEEDS_PER_ITERATOR).astype(np.uint64)

    def take(self) -> TakenSeeds:
        """Return the seeds of a further iterator, which is made now."""
        index = None if self.is_uncertain and self.reshuffles else self.num_taken
        self.num_taken += 1
        return TakenSeeds(generator=self, index=index)


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenSeeds:
    """The seeds of one iterator: the pair `index` of its generator; None where nobody knows."""

    generator: SeedGenerator
    index: int | None

    @property
    def seeds(self) -> KernelSeeds:
        """Return the seeds.

        Raises:
            UnpredictableOrderError: they depend on the machine or on timing.
        """
        generator = self.generator
        if self.index is None and generator.kernel is not None:
            raise UnpredictableOrderError(
                f"the seeds of a later iterator of {generator.stage} depend on timing: threads "
                "above it read ahead when a pass is cut short, and may have begun another epoch or "
                "not; cut below the stages that read ahead, or shuffle with "
                "reshuffle_each_iteration=False"
            )
        return generator.seeds_of(self.index or 0)


class ScriptSeeds:
    """The seeds that the ops of a script get as it builds them, one after the other.

    global_seed: that of `tf.random.set_seed`, None without it.
    op_index: how many ops without a seed of their own, `tf.random.uniform` among them, were built
        since.
    """

    def __init__(self, global_seed: int | None = None) -> None:
        self.global_seed, self.op_index = global_seed, 0
        # tensorflow/python/eager/context.py draws op seeds with Python's own generator.
        self._drawn = random.Random(index(global_seed or 0))  # noqa: S311 - no secret

    def kernel(self, seed: int | tuple[int, int] | None) -> KernelSeeds | None:
        """Return the seeds of the next op's kernel; None are those of the machine.

        seed: the op's own; a pair is what the kernel was given, whatever the global seed is.
        """
        if isinstance(seed, tuple):
            # Two zeros tell the kernel to take its seeds from the machine.
            return KernelSeeds(seed=seed[0], seed2=seed[1]) if any(seed) else None
        if seed is None:
            if self.global_seed is None:
                return None
            self.op_index += 1
            seed = self._drawn.randint(0, SEED_MODULUS)
        return shuffle_kernel_seeds(seed, self.global_seed)


# Shuffle passes: how many iterators of a shuffle a pass over a dataset makes.
#
# A pass is one iteration of a dataset, and may repeat it: num_epochs epochs. A shuffle that
# reshuffles takes new seeds for each iterator made of it, so a later pass depends on how many
# iterators the earlier ones made, also of those that nobody read. All passes before the one asked
# for are taken to be read to their end.


def iterators_per_pass(
    num_epochs: int,
    *,
    fused: bool,
    loop: Loop = "python",
    under_shuffle: bool = False,
    partial_last_batch: bool = False,
) -> int:
    """Return how many iterators of a shuffle a pass makes that is read to its end.

    num_epochs: the epochs in a pass, as in `repeat(num_epochs)`.
    fused: TensorFlow made one op of the shuffle and the `repeat` right above it. It does not where
        anything that stays in the graph is between the two, also `with_options`, or where the
        optimisation shuffle_and_repeat_fusion is off; the interleave is above a file shuffle.
    loop: "keras-fit" is `fit` or `evaluate` on a dataset of known cardinality, without
        steps_per_epoch; each of its epochs is a pass. Everything else counts as "python".
    under_shuffle: another shuffle, above this one, is below the repeat; it asks for an iterator
        of this one only when an epoch starts to be read.
    partial_last_batch: the last batch of a pass is smaller than the others and not dropped.

    >>> iterators_per_pass(3, fused=False), iterators_per_pass(1, fused=True, loop="keras-fit")
    (4, 2)

    Raises:
        UnpredictableOrderError: their number depends on the timing of TensorFlow's threads.
    """
    if under_shuffle:
        return num_epochs
    # A repeat that is not fused makes an iterator more when it is asked for what follows the
    # last epoch (tensorflow/core/kernels/data/repeat_dataset_op.cc); repeat(1) is optimised
    # away.
    extra = int(not fused and num_epochs > 1)
    if loop == "python":
        return num_epochs + extra
    # Keras never asks for what follows the last batch, but makes an iterator there that it
    # drops at the next epoch (keras/src/trainers/epoch_iterator.py). To fill a partial batch
    # the repeat was asked already; else the prefetch that TensorFlow adds asks it before that,
    # meanwhile or not at all.
    if extra and not partial_last_batch:
        raise UnpredictableOrderError(
            f"the shuffle of a later pass of keras-fit over {num_epochs} epochs depends "
            "on timing: repeat with fit(epochs=...), or keep a partial last batch"
        )
    return num_epochs + extra + KERAS_UNREAD_ITERATORS
