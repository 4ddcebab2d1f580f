"""A `grain.MapDataset` in tf.data's order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.settings.read_settings import SettingsLike
from shardctl.errors import UsageError
from shardctl.feeding.key_order import KeyOrder
from shardctl.feeding.place import record_at
from shardctl.feeding.sources import BuilderOrDataset, DataSource, check_source, with_types
from shardctl.files.position_file import position_text
from shardctl.grain.libraries import grain
from shardctl.grain.sampler import order_of_fit
from shardctl.grain.states import GrainState, elements_of_iterator, examples_of_elements, order_from


@checked
def map_dataset(
    source: DataSource,
    dataset: BuilderOrDataset,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int = 0,
    states: Sequence[bytes] = (),
) -> Any:
    """Return a `grain.MapDataset` of the examples that tf.data reads, in its order.

    Behind it stand Grain's own `map`, `batch` and `to_iter_dataset`; batches that are made before
    `to_iter_dataset` are tf.data's, with `mp_prefetch` of any number of workers, and whole ones
    alone where the settings drop the rest. `repeat` and `shuffle` belong to the settings: all
    epochs are one dataset (`ReadSettings(epochs=N)`), and an index behind the last is refused.

    Args:
        source: `tfds.data_source(name, split=spec)`, or another sequence of the same records.
        dataset, spec, settings, consumed, states: as for `Sampler`; the states of iterators behind
            a MapDataset say nothing of their order, so `position` of the dataset makes states of
            them.

    Raises:
        DatasetError: the source is not of the dataset and spec; or as for `Sampler`.
        UsageError, UnpredictableOrderError: as for `Sampler`.
        MissingDependencyError: Grain is not installed.
    """
    order = order_from(dataset, spec, settings, consumed=consumed, states=states)
    check_source(source, order)
    return _kind()(grain().MapDataset.source(with_types(source)), order)


@cache
def _kind() -> type:
    base = grain().MapDataset
    made = type(base)("OrderedMapDataset", (_Ordered, base), {"__module__": __name__})
    made.__doc__ = _Ordered.__doc__
    return made  # type: ignore[no-any-return]


def __getattr__(name: str) -> type:
    # Worker processes look for the class by its name.
    if name == "OrderedMapDataset":
        return _kind()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Ordered:
    """The records of a source in an order, each by its index from the place on."""

    _parent: Any  # of MapDataset, as are the next
    _stats: Any
    slice: Any

    def __init__(self, records: Any, order: KeyOrder) -> None:
        super().__init__(records)  # type: ignore[call-arg]
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
        consumed = min(examples_of_elements(elements_of_iterator(state), width), len(self))
        return position_text(record_at(self._order, self._order.consumed + consumed))

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
