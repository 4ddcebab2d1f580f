"""Batches with tf.data's types: a data source hands out Python numbers, whose types are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.errors import UsageError
from shardctl.feeding.feature_types import is_text, says_types, types_of
from shardctl.feeding.sources import DataSource
from shardctl.torch.libraries import torch_data


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
