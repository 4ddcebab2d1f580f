"""What `fit` does that a position cannot follow, refused before it trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.errors import UsageError
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.position.deferred import position_of
from shardctl.tfds.position.derived import leaves_order_open

# Datasets of tf.data that hand out element for element what they are given.
_ONE_FOR_ONE = (
    "_MapDataset",
    "_ParallelMapDataset",
    "_PrefetchDataset",
    "_OptionsDataset",
    "_AutoShardDataset",  # of tf.distribute, here for one worker
    "_RestructuredDataset",
    "_RebatchDataset",  # a batch in as many parts as there are replicas
    "_LegacyRebatchDataset",
)


def check_model(model: Any) -> None:
    """Refuse a model whose `fit` takes batches otherwise than one by one, in this process.

    Raises:
        UsageError: another backend than TensorFlow, several steps an execution, or several workers.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"ResumeFit is for Keras on TensorFlow, and this is on {keras.backend.backend()}: "
            "count the position in a loop of your own, or train with KERAS_BACKEND=tensorflow"
        )
    if (steps := model.steps_per_execution) != 1:
        raise UsageError(
            f"steps_per_execution={steps}: a run may be saved between batches that Keras counts "
            "as one; compile(steps_per_execution=1)"
        )
    tf = tensorflow()
    strategy = model.distribute_strategy
    alone = (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy)
    by_default = type(strategy).__name__ == "_DefaultDistributionStrategy"
    if not (by_default or type(strategy) in alone) or keras.distribution.distribution() is not None:
        raise UsageError(
            f"{type(strategy).__name__}: ResumeFit follows fit in one process; tf.data would part "
            "this dataset among workers by a rule of its own"
        )


def check_dataset(iterator: Any, position: object) -> None:
    """Refuse an iterator of `fit` that reads something else than `position.dataset()`.

    Raises:
        UsageError: another dataset, or one that was shuffled, cut or batched once more.
    """
    for read in _datasets_read(iterator):
        dataset = read
        while position_of(dataset) is not position:
            name = type(dataset).__name__
            inputs = dataset._inputs() if hasattr(dataset, "_inputs") else []
            if name not in _ONE_FOR_ONE or len(inputs) != 1:
                raise UsageError(
                    f"fit reads a {name.strip('_')} that is not position.dataset(), or is behind "
                    "it: give fit position.dataset(transform=..) of the position that ResumeFit "
                    "has; behind it only map and prefetch leave the batches what they are"
                )
            if leaves_order_open(dataset):
                raise UsageError(
                    "fit reads batches behind position.dataset() as they are ready, not in its "
                    "order: leave deterministic=False out"
                )
            dataset = inputs[0]


def _datasets_read(iterator: Any) -> Iterator[Any]:
    """Yield the datasets that an iterator reads, one a worker."""
    for worker in getattr(iterator, "_iterators", None) or [iterator]:
        yield getattr(worker, "_dataset", worker)
