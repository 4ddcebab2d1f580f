"""The seeds from which the two shuffles of a pipeline draw in an epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import (
    Loop,
    ShufflePasses,
    file_shuffle_passes,
    user_shuffle_passes,
)
from shardctl.core.shuffle.seeds import (
    KernelSeeds,
    iterator_seeds,
    seeds_of_iterators,
    shuffle_kernel_seeds,
)


@dataclass(frozen=True, kw_only=True)
class EpochSeeds:
    """Seeds of the file shuffle and of the shuffle buffer, epoch by epoch of the pass.

    `partial_last_batch` says that the last batch of a pass is smaller than the others and kept;
    what Keras makes of a repeat depends on it.

    >>> seeds = EpochSeeds(settings=ReadSettings(shuffle_seed=7, epochs=2))
    >>> seeds.of_files(0) == seeds.of_files(1)
    False
    """

    settings: ReadSettings
    partial_last_batch: bool = False

    def of_files(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the files are shuffled in an epoch.

        Raises:
            UnpredictableOrderError: Keras, a later pass and a repeat, where threads race.
        """
        settings = self.settings
        return iterator_seeds(
            settings.shuffle_seed,
            settings.global_seed,
            settings.reshuffle,
            self._passes_of_files.iterator_index(settings.pass_index, epoch),
        )

    def of_files_in(self, epochs: range) -> NDArray[np.uint64]:
        """Return the seeds of the file shuffle in epochs that follow each other, uint64[n, 2].

        Raises:
            UnpredictableOrderError: as for one.
        """
        settings = self.settings
        kernel = shuffle_kernel_seeds(settings.shuffle_seed, settings.global_seed)
        if settings.reshuffle is False:
            return np.full((len(epochs), 2), (kernel.seed, kernel.seed2), np.uint64)
        first = self._passes_of_files.iterator_index(settings.pass_index, epochs.start)
        return seeds_of_iterators(kernel, range(first, first + len(epochs)))

    @property
    def _passes_of_files(self) -> ShufflePasses:
        settings = self.settings
        return file_shuffle_passes(
            num_epochs=settings.epochs,
            loop=self._loop,
            under_user_shuffle=settings.buffer is not None,
            repeat_filenames=settings.repeat_files,
            reshuffle=settings.reshuffle,
            partial_last_batch=self.partial_last_batch,
        )

    def of_buffer(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the shuffle buffer is read in an epoch.

        Raises:
            UnpredictableOrderError: as for the files.
        """
        settings = self.settings
        passes = user_shuffle_passes(
            # The files that repeat are one endless epoch for whatever follows the reader.
            num_epochs=1 if settings.repeat_files else settings.epochs,
            loop=self._loop,
            reshuffle=settings.buffer_reshuffle,
            partial_last_batch=self.partial_last_batch,
        )
        return iterator_seeds(
            settings.buffer_seed,
            settings.global_seed,
            settings.buffer_reshuffle,
            passes.iterator_index(settings.pass_index, epoch),
            # Without seeds of their own the two shuffles draw theirs one after the other.
            op_index=int(settings.shuffles_files and settings.shuffle_seed is None),
        )

    @property
    def _loop(self) -> Loop:
        # With an InputContext TFDS asserts no cardinality, and Keras makes an iterator an epoch of
        # a dataset whose length it does not know (keras/src/trainers/epoch_iterator.py).
        knows_length = self.settings.host is None or self.settings.host_mode.knows_length
        return self.settings.loop if knows_length else "python"
