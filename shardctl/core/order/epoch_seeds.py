"""The seeds from which the two shuffles of a pipeline draw in an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.generator import ScriptSeeds, SeedGenerator
from shardctl.core.shuffle.passes import (
    Loop,
    ShufflePasses,
    file_shuffle_passes,
    user_shuffle_passes,
)
from shardctl.core.shuffle.seeds import KernelSeeds


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

    @cached_property
    def _generators(self) -> tuple[SeedGenerator, SeedGenerator]:
        """Those of the files and of the buffer; without seeds of their own, drawn in this order."""
        settings, script = self.settings, ScriptSeeds(self.settings.global_seed)
        of_files = script.kernel(settings.shuffle_seed) if settings.shuffles_files else None
        return (
            SeedGenerator(of_files, settings.reshuffle, stage="the shuffle of the files"),
            SeedGenerator(
                script.kernel(settings.buffer_seed), settings.buffer_reshuffle, stage="the buffer"
            ),
        )

    def of_files(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the files are shuffled in an epoch.

        Raises:
            UnpredictableOrderError: Keras, a later pass and a repeat, where threads race.
        """
        index = self._passes_of_files.iterator_index(self.settings.pass_index, epoch)
        return self._generators[0].seeds_of(index)

    def of_files_in(self, epochs: range) -> NDArray[np.uint64]:
        """Return the seeds of the file shuffle in epochs that follow each other, uint64[n, 2].

        Raises:
            UnpredictableOrderError: as for one.
        """
        first = self._passes_of_files.iterator_index(self.settings.pass_index, epochs.start)
        return self._generators[0].seeds_of_several(range(first, first + len(epochs)))

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
        return self._generators[1].seeds_of(passes.iterator_index(settings.pass_index, epoch))

    @property
    def _loop(self) -> Loop:
        # With an InputContext TFDS asserts no cardinality, and Keras makes an iterator an epoch of
        # a dataset whose length it does not know (keras/src/trainers/epoch_iterator.py).
        knows_length = self.settings.host is None or self.settings.host_mode.knows_length
        return self.settings.loop if knows_length else "python"
