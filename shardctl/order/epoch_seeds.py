"""The seeds from which the two shuffles of a pipeline draw in an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    ScriptSeeds,
    SeedGenerator,
    iterators_per_pass,
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
        return self._generators[0].seeds_of(epoch + self._files_before)

    def of_files_in(self, epochs: range) -> NDArray[np.uint64]:
        """Return the seeds of the file shuffle in epochs that follow each other, uint64[n, 2].

        Raises:
            UnpredictableOrderError: as for one.
        """
        first = epochs.start + self._files_before
        return self._generators[0].seeds_of_several(range(first, first + len(epochs)))

    def of_buffer(self, epoch: int) -> KernelSeeds:
        """Return the seeds with which the shuffle buffer is read in an epoch.

        Raises:
            UnpredictableOrderError: as for the files.
        """
        # The files that repeat are one endless epoch for whatever follows the reader.
        epochs = 1 if self.settings.repeat_files else self.settings.epochs
        before = self._before(self._generators[1], epochs, fused=True)
        return self._generators[1].seeds_of(epoch + before)

    @property
    def _files_before(self) -> int:
        """Iterators of the file shuffle that earlier passes made."""
        settings, files = self.settings, self._generators[0]
        if settings.repeat_files and settings.pass_index and not files.is_fixed:
            raise UsageError("a pass that repeats forever has no end, so no pass follows it")
        under = settings.buffer is not None
        return self._before(files, settings.epochs, fused=False, under_shuffle=under)

    def _before(self, generator: SeedGenerator, epochs: int, **how: bool) -> int:
        settings = self.settings
        if not settings.pass_index or generator.is_fixed:
            return 0
        # With an InputContext TFDS asserts no cardinality, and Keras makes an iterator an epoch of
        # a dataset whose length it does not know (keras/src/trainers/epoch_iterator.py).
        knows_length = settings.host is None or settings.host_mode.knows_length
        per_pass = iterators_per_pass(
            epochs,
            loop=settings.loop if knows_length else "python",
            partial_last_batch=self.partial_last_batch,
            **how,
        )
        return settings.pass_index * per_pass
