"""Epochs that are dealt to processes: each takes its turn at a permutation that starts over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.handed_out import Batches, EqualBatches, HandedOut, matches

Permutation = NDArray[np.signedinteger]
Permutations = Callable[[int], Permutation]


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Which places of an epoch one of `num_hosts` processes is dealt: `block` of them at a time.

    size: how many it is dealt. Places count on where the epoch ends, which then starts over.

    >>> Deal(host=1, num_hosts=3, block=2, size=4).places(np.arange(4)).tolist()
    [2, 3, 8, 9]
    """

    host: int = 0
    num_hosts: int = 1
    block: int = 1
    size: int

    def places(self, positions: Int64s) -> Int64s:
        """Return the place of each position of the process."""
        if self.num_hosts == 1:
            return positions
        turns, offsets = np.divmod(positions, self.block)
        return (turns * self.num_hosts + self.host) * self.block + offsets

    def positions(self, places: Int64s) -> tuple[NDArray[np.intp], Int64s]:
        """Return (which of the places, its position), of those that the process is dealt."""
        blocks, offsets = np.divmod(places, self.block)
        turns, hosts = np.divmod(blocks, self.num_hosts)
        positions = turns * self.block + offsets
        mine = np.flatnonzero((hosts == self.host) & (positions < self.size))
        return mine, positions[mine]


class Dealt(HandedOut):
    """All epochs of a process that is dealt its part of each, by the same deal.

    `permutation(e)` returns the order of the e-th epoch; None reads it as it is stored.
    """

    def __init__(
        self,
        num_elements: int,
        deal: Deal,
        *,
        epochs: int,
        permutation: Permutations | None,
        batch: int | None,
    ) -> None:
        self._num_elements, self._deal, self._epochs = num_elements, deal, epochs
        self._permutation = permutation
        self._kept: dict[int, Permutation] = {}
        self.epoch_size = deal.size
        self.num_examples = deal.size * epochs
        self.shuffles = self.is_uniform = permutation is not None
        self.batches: Batches | None = None
        if batch is not None:
            self.batches = EqualBatches(deal.size, batch, epochs=epochs)

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        epochs, within = np.divmod(positions, max(self.epoch_size, 1))
        places = self._deal.places(within) % max(self._num_elements, 1)
        if self._permutation is None:
            return places
        for epoch in np.unique(epochs).tolist():
            here = np.flatnonzero(epochs == epoch)
            places[here] = self._order(epoch)[places[here]]
        return places

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is handed out."""
        queries, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        again = self._places_again()
        for epoch in range(self._epochs if len(indices) else 0):
            places = self._places(epoch, indices)
            which, within = self._deal.positions(places)
            repeated, repetition = matches(places, again % max(self._num_elements, 1))
            queries += [which, repeated]
            found = self._deal.positions(again[repetition])[1]
            positions += [within + epoch * self.epoch_size, found + epoch * self.epoch_size]
        return np.concatenate(queries), np.concatenate(positions)

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return positions // max(self.epoch_size, 1)

    def _places_again(self) -> Int64s:
        """Return the places of the process at which the epoch has started over: its last ones."""
        last = np.arange(max(self._deal.size - self._deal.block, 0), self._deal.size)
        places = self._deal.places(last)
        return places[places >= self._num_elements]

    def _places(self, epoch: int, indices: Int64s) -> Int64s:
        """Return where in an epoch the examples are."""
        if self._permutation is None:
            return indices
        order = self._order(epoch)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order), dtype=order.dtype)
        places: Int64s = inverse[indices].astype(np.int64)
        return places

    def _order(self, epoch: int) -> Permutation:
        found = self._kept.pop(epoch, None)
        if found is None:
            while len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]
            found = self._permutation(epoch)  # type: ignore[misc]  # asked for where it is
        self._kept[epoch] = found
        return found
