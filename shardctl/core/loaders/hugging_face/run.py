"""One run of examples, in the order of their files, in each of some epochs."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.handed_out import Batches, HandedOut


class Run(HandedOut):
    """The indices from `start` on, `size` of them in each epoch, without an array of them."""

    def __init__(self, start: int, size: int, epochs: int, batches: Batches | None) -> None:
        self._start, self._epochs = start, epochs
        self.epoch_size, self.num_examples = size, size * epochs
        self.batches = batches

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        return self._start + positions % max(self.epoch_size, 1)

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is handed out."""
        places = np.asarray(indices, np.int64) - self._start
        which = np.flatnonzero((places >= 0) & (places < self.epoch_size))
        queries = np.repeat(which, self._epochs)
        epochs = np.tile(np.arange(self._epochs), len(which))
        return queries, places[queries] + epochs * self.epoch_size

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return positions // max(self.epoch_size, 1)
