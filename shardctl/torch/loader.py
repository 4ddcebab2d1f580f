"""A DataLoader that hands out tf.data's batches, and knows how many it has handed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.settings.read_settings import SettingsLike
from shardctl.core.text import choices
from shardctl.errors import UsageError
from shardctl.feeding.key_order import check_number
from shardctl.feeding.sources import (
    BuilderOrDataset,
    DataSource,
    check_source,
    is_text,
    says_types,
    types_of,
)
from shardctl.torch.sampler import Sampler, sampler_at, torch_data
from shardctl.torch.states import TorchState, order_from

_MOST_WORKERS = 10_000
# What the order fixes, or is an argument of its own.
_FIXED = (
    "batch_sampler",
    "batch_size",
    "dataset",
    "drop_last",
    "num_workers",
    "sampler",
    "shuffle",
)


@checked
def data_loader(
    source: DataSource,
    dataset: BuilderOrDataset,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    workers: int = 0,
    consumed: int = 0,
    states: Sequence[TorchState] = (),
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Return a `torch.utils.data.DataLoader` that hands out tf.data's batches.

    They are equal to tf.data's with any number of workers, the last one too, which is smaller, or
    left out where the settings drop it; without `settings.batch` it hands out examples. Its
    `state_dict()` is the place behind the batches that it has handed out, with workers too, and
    `load_state_dict` goes there; `set_epoch` is that of its `sampler`.

    Args:
        source: `tfds.data_source(name, split=spec)`, or another map-style dataset of its records.
        dataset, spec, settings, consumed, states: as for `Sampler`.
        workers: worker processes.
        options: others of DataLoader's arguments, as {"pin_memory": True, "collate_fn": stack}.

    Raises:
        UsageError: options that the order fixes; as for `Sampler`.
        DatasetError: the source is not of the dataset and spec; or as for `Sampler`.
        UnpredictableOrderError: TensorFlow leaves the order open.
        MissingDependencyError: PyTorch is not installed.
    """
    check_number("workers", workers, _MOST_WORKERS)
    given = dict(options or {})
    if wrong := [name for name in _FIXED if name in given]:
        raise UsageError(
            f"options: {choices(wrong)} of a DataLoader follows from the order, the settings or an "
            "argument of data_loader"
        )
    if given.get("in_order", True) is not True:
        raise UsageError("options: in_order=False hands out batches as workers end them")
    order = order_from(dataset, spec, settings, consumed=consumed, states=states)
    check_source(source, order)
    if order.settings.batch is not None and says_types(source):
        given.setdefault("collate_fn", collate_as_tf_data(source))
    kind = _kind(torch_data().DataLoader)
    return kind(
        source,
        batch_size=order.settings.batch,
        sampler=sampler_at(order),
        num_workers=workers,
        **given,
    )


class _Counts:
    """What is put before a DataLoader: the count of the batches that it has handed out."""

    sampler: Sampler
    _count: list[int] | None = None  # of the newest iterator

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator of batches, counted as they are handed out."""
        self._count = count = [0]
        return _counted(super().__iter__(), count)  # type: ignore[misc]

    def set_epoch(self, epoch: int) -> None:
        """Go to a pass over the dataset, as `Sampler.set_epoch`."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind the batches that were handed out."""
        begun = self.sampler.is_begun and self._count
        return self.sampler.state_after(self._count[0] if begun and self._count else 0)

    def load_state_dict(self, state: Any) -> None:
        """Go to the place of a state, as `Sampler.load_state_dict`."""
        self.sampler.load_state_dict(state)


def _counted(batches: Iterator[Any], count: list[int]) -> Iterator[Any]:
    for batch in batches:
        count[0] += 1
        yield batch


@cache
def _kind(base: Any) -> Any:
    return type("DataLoader", (_Counts, base), {"__module__": __name__})


# Batches with tf.data's types: a data source hands out Python numbers, whose types are lost.


@checked
def collate_as_tf_data(source: DataSource) -> Callable[[Sequence[Any]], Any]:
    """Return the `collate_fn` with which tensors have the types of a source's features, as tf.data.

    `tfds.data_source` hands out scalars and sequences as Python's numbers and lists, of which
    PyTorch's default makes float64 and int64, and a tensor a place. Texts are lists of bytes.
    `data_loader` takes it by itself.

    Raises:
        UsageError: the source is not TFDS's, and says nothing of types.
    """
    if not says_types(source):
        raise UsageError(
            "source: what tfds.data_source returned is needed, which knows its features"
        )
    return Collate(types_of(source))


class Collate:
    """Makes a batch of examples; worker processes are handed it."""

    def __init__(self, types: Any) -> None:
        self._types = types

    def __call__(self, examples: Sequence[Any]) -> Any:
        return _batch(examples, self._types)


def _batch(examples: Sequence[Any], types: Any) -> Any:
    import numpy as np

    first = examples[0]
    if isinstance(types, dict) and isinstance(first, dict):
        return {name: _batch([one[name] for one in examples], types.get(name)) for name in first}
    if isinstance(types, str) and isinstance(first, bool | int | float | list):
        if is_text(types):
            return list(examples)
        import torch

        return torch.from_numpy(np.stack([np.asarray(one, types) for one in examples]))
    if isinstance(first, np.ndarray) and first.dtype == object:
        return [one.tolist() for one in examples]
    return torch_data().default_collate(examples)
