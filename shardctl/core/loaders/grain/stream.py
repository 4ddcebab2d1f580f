"""The examples that one process of Grain reads, before worker processes share them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.grain.index_shuffle import is_permutation, shuffled, unshuffled

NUM_SEEDS = 1 << 32
# Pairs of an example and an epoch that are looked up at once.
_PAIRS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Places 0 to `size` of one process, whose k-th is number `start + k * stride` of a sequence.

    The sequence is epochs of `share` examples, from example `first` on, one after the other and
    without end; each is shuffled by `seed` + epoch where there is a seed. Windows of the sequence
    are shuffled by `window_seed` + window; the last of them may reach beyond the last epoch.
    """

    size: int
    share: int
    first: int = 0
    seed: int | None = None
    window: int | None = None
    window_seed: int = 0
    start: int = 0
    stride: int = 1

    @property
    def shuffles(self) -> bool:
        """Whether anything is mixed."""
        return self.seed is not None or self.window is not None

    @property
    def is_uniform(self) -> bool:
        """Whether each epoch is a permutation without rule of all that is read in it."""
        return self.seed is not None and is_permutation(self.share)

    @property
    def size_of_first_epoch(self) -> int:
        """Number of places in the first epoch."""
        return min(self.size, len(range(self.start, self.share, self.stride)))

    def indices_at(self, places: Int64s) -> Int64s:
        """Return the index of the example at each place, int64[q]."""
        numbers = self.start + places * self.stride
        if self.window is not None:
            windows, within = np.divmod(numbers, self.window)
            within = shuffled(within, self._window_seeds(windows), self.window)
            numbers = windows * self.window + within
        epochs, within = np.divmod(numbers, max(self.share, 1))
        if self.seed is not None:
            within = shuffled(within, self._seeds(epochs), self.share)
        return self.first + within

    def places_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, place), int64[r] each, for each time one is read."""
        wanted = np.flatnonzero((indices >= self.first) & (indices < self.first + self.share))
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        if len(wanted) and self.size:
            epochs_at_once = max(_PAIRS // len(wanted), 1)
            for begin in range(0, self._num_epochs, epochs_at_once):
                epochs = range(begin, min(begin + epochs_at_once, self._num_epochs))
                found.append(self._places_in(indices, wanted, epochs))
        queries, places = zip(*found, strict=True)
        return np.concatenate(queries), np.concatenate(places)

    def epochs_at(self, places: Int64s) -> Int64s:
        """Return the epoch of each place, int64[q]; a window belongs to the epoch of its places."""
        return (self.start + places * self.stride) // max(self.share, 1)

    @property
    def _num_epochs(self) -> int:
        """How many epochs examples are read from."""
        last = self.start + (self.size - 1) * self.stride
        if self.window is not None:
            last += self.window - 1 - last % self.window
        return last // self.share + 1

    def _places_in(self, indices: Int64s, wanted: Int64s, epochs: range) -> tuple[Int64s, Int64s]:
        which, epoch = np.tile(wanted, len(epochs)), np.repeat(epochs, len(wanted))
        numbers = indices[which] - self.first
        if self.seed is not None:
            again, numbers = unshuffled(numbers, self._seeds(epoch), self.share)
            which, epoch = which[again], epoch[again]
        numbers = numbers + epoch * self.share
        if self.window is not None:
            windows, within = np.divmod(numbers, self.window)
            again, within = unshuffled(within, self._window_seeds(windows), self.window)
            which, numbers = which[again], windows[again] * self.window + within
        places, beside = np.divmod(numbers - self.start, self.stride)
        here = (beside == 0) & (places >= 0) & (places < self.size)
        return which[here], places[here]

    def _seeds(self, epochs: Int64s) -> Int64s:
        """Return the seeds of epochs, one for all of them where they are one epoch."""
        assert self.seed is not None
        return (self.seed + _one_for_all(epochs)) % NUM_SEEDS

    def _window_seeds(self, windows: Int64s) -> Int64s:
        return self.window_seed + _one_for_all(windows)


def _one_for_all(numbers: Int64s) -> Int64s:
    return numbers[:1] if len(numbers) and (numbers == numbers[0]).all() else numbers
