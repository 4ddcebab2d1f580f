"""A `grain.MapDataset` in tf.data's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.settings.read_settings import SettingsLike
from shardctl.grain.libraries import grain
from shardctl.grain.sampler import order_from
from shardctl.grain.sources import BuilderOrDataset, DataSource, check_source


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
    grain()
    from shardctl.grain.ordered_map import OrderedMapDataset

    return OrderedMapDataset(source, order)
