"""The MapDataset that reads a source in an order; importing this imports Grain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grain

from shardctl.core.arguments.checked import checked
from shardctl.errors import UsageError
from shardctl.grain.grain_state import GrainState, elements_of_iterator
from shardctl.grain.key_order import KeyOrder
from shardctl.grain.sampler import order_of_fit, position_of


class OrderedMapDataset(grain.MapDataset[Any]):
    """The records of a source in an order, each by its index from the place on."""

    def __init__(self, source: Any, order: KeyOrder) -> None:
        super().__init__(grain.MapDataset.source(source))
        self._order = order

    @property
    def order(self) -> KeyOrder:
        """The order, from the place on at which the dataset begins."""
        return self._order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        key = self._key(index)
        with self._stats.record_self_time():
            return self._parent[key]

    def _getitems(self, indices: Sequence[int]) -> Sequence[Any]:
        found: Sequence[Any] = self._parent._getitems([self._key(index) for index in indices])
        return found

    @checked
    def position(self, state: GrainState, *, batch: int | None = None) -> bytes:
        """Return where an iterator behind this dataset is, as the state of a position.

        `batch` is the size of the batches that the iterator hands out, made by `batch` before
        `to_iter_dataset`; None is that of the settings.

        Raises:
            DatasetError: no state of such an iterator.
        """
        width = (self._order.settings.batch or 1) if batch is None else batch
        consumed = min(elements_of_iterator(state) * width, len(self))
        return position_of(self._order, self._order.consumed + consumed)

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the order of an epoch of Keras `fit`; `fit_epochs` makes a callback that does so.

        Raises:
            UsageError: the dataset begins in the midst of an epoch, and this is another one.
        """
        self._order = order_of_fit(self._order, epoch)

    def _key(self, index: int) -> int:
        if 0 <= index < len(self._order):
            return self._order.key(index)
        if -len(self._order) <= index < 0:
            return self._order.key(index + len(self._order))
        raise UsageError(
            f"index {index}: the order has {len(self._order)} examples; where a dataset is "
            "repeated, tf.data reads each epoch in an order of its own, so leave repeat() out and "
            "give the settings epochs=N"
        )

    def __str__(self) -> str:
        return f"OrderedMapDataset({self._order.dataset.title} {self._order.spec})"
