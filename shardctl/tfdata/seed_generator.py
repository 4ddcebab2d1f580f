"""Seed generators: which pair of seeds each iterator of a shuffle takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardctl.errors import UnpredictableOrderError
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    seeds_of_iterator,
    seeds_of_iterators,
    shuffle_kernel_seeds,
)


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
        if self.kernel is None:
            raise UnpredictableOrderError(
                f"{self.stage} has no seed and so another order in each run: set its seed, or "
                "tf.random.set_seed"
            )
        return seeds_of_iterator(self.kernel, index) if self.reshuffles else self.kernel

    def seeds_of_several(self, iterators: range) -> NDArray[np.uint64]:
        """Return `seeds_of` of many, uint64[n, 2]; `iterators` count on one by one.

        Raises:
            UnpredictableOrderError, UsageError: as for one.
        """
        if self.reshuffles and self.kernel is not None and len(iterators) != 1:
            return seeds_of_iterators(self.kernel, iterators)
        seeds = self.seeds_of(iterators.start)
        return np.full((len(iterators), 2), (seeds.seed, seeds.seed2), np.uint64)

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
    op_index: how many ops without a seed of their own were built since.
    """

    def __init__(self, global_seed: int | None = None, op_index: int = 0) -> None:
        self.global_seed, self.op_index = global_seed, op_index

    def kernel(self, seed: int | tuple[int, int] | None) -> KernelSeeds | None:
        """Return the seeds of the next op's kernel; None are those of the machine.

        seed: the op's own; a pair is what the kernel was given, whatever the global seed is.
        """
        if isinstance(seed, tuple):
            # Two zeros tell the kernel to take its seeds from the machine.
            return KernelSeeds(seed=seed[0], seed2=seed[1]) if any(seed) else None
        if seed is not None:
            return shuffle_kernel_seeds(seed, self.global_seed)
        if self.global_seed is None:
            return None
        self.op_index += 1
        return shuffle_kernel_seeds(None, self.global_seed, op_index=self.op_index - 1)
