"""What a script does with the dataset of a position before it counts the elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.core.text import counted
from shardctl.errors import UsageError
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.position.deferred import position_of

# By what tf.data calls the dataset objects that its methods make, without "_" and "Dataset".
_BATCHES = {
    "Batch": 1,
    "DenseToRagged": 1,
    "DenseToSparseBatch": 1,
    "MapAndBatch": 1,
    "PaddedBatch": 1,
    "ParallelBatch": 1,
    "Unbatch": -1,
}
# After these, the elements are not the next ones of the order, each once.
_OTHERS = {
    "AutoShard": "experimental_distribute",
    "Cache": "cache",
    "Concatenate": "concatenate",
    "DirectedInterleave": "sample_from_datasets",
    "Filter": "filter",
    "FlatMap": "flat_map",
    "GlobalShuffle": "shuffle",
    "GroupByReducer": "group_by_reducer",
    "GroupByWindow": "group_by_window",
    "IgnoreErrors": "ignore_errors",
    "Interleave": "interleave",
    "LegacyRebatch": "rebatch",
    "LegacySnapshot": "snapshot",
    "ParallelInterleave": "interleave",
    "Rebatch": "rebatch",
    "Repeat": "repeat",
    "Shard": "shard",
    "Shuffle": "shuffle",
    "ShuffleAndRepeat": "shuffle_and_repeat",
    "Skip": "skip",
    "Snapshot": "snapshot",
    "Unique": "unique",
    "Unordered": "deterministic=False",
    "Window": "window",
}


def check_derived(position: object, elements: Any, *, batched: bool, counts_batches: bool) -> None:
    """Refuse a dataset whose elements are not what is counted: the next of the order, each once.

    `batched` says whether those of the position are batches already, `counts_batches` whether what
    is counted are. Of what does not begin with the dataset of a position nothing is known.

    Raises:
        UsageError: a call behind it picks, repeats or reorders examples, or batches them otherwise
            than they are counted; or these are elements of another position.
    """
    dataset = _dataset_read(elements)
    found = _names_behind(dataset)
    if not found:
        return
    names = next((names for of, names in found if of is position), None)
    if names is None:
        raise UsageError(f"elements: these are of another position, {found[0][0]!r}")
    depth = int(batched)
    for name in names:
        depth += _BATCHES.get(name, 0)
        if name in _OTHERS:
            raise UsageError(
                f"{_OTHERS[name]} behind position.dataset() hands out other examples than the next "
                "ones of the order, and counted they would be taken for those; what the settings "
                "say (ReadSettings(buffer=..), stages=..) is counted as it is"
            )
    if depth == int(counts_batches):
        return
    if depth > 1:
        raise UsageError(
            "elements: these are batches of batches, and examples are counted by the first "
            "dimension; make them of the batch that you are handed"
        )
    if depth:
        raise UsageError(
            "elements: batches are handed out and examples are counted; count(.., batch=N) says "
            "of how many they are, or ReadSettings(batch=N) makes them"
        )
    raise UsageError("elements: examples are handed out, and batches are counted")


def check_length(elements: Any, left: int | None) -> None:
    """Refuse a dataset that has more elements than an order has left, None where nobody knows.

    So is one that begins at the start of the order, where a position is further on.

    Raises:
        UsageError: it has more, as far as tf.data knows how many.
    """
    tf = tensorflow()
    if left is None or not isinstance(elements, tf.data.Dataset) or not tf.executing_eagerly():
        return
    number = int(elements.cardinality())
    if number > left:
        raise UsageError(
            f"{counted(number, 'element')} to count, and the order has {left:,} left from here: "
            "a dataset from its beginning, or of other settings? position.dataset() goes on from "
            "where the position is"
        )


def leaves_order_open(dataset: Any) -> bool:
    """Return whether a call or its options hand out elements as they are ready, in any order."""
    by_call = getattr(dataset, "_deterministic", "") == "false"
    return by_call or dataset.options().deterministic is False


def _names_behind(dataset: Any) -> list[tuple[object, list[str]]]:
    """Return the positions that a dataset begins with, each with the dataset objects behind it."""
    position = position_of(dataset)
    if position is not None:
        return [(position, [])]
    name = type(dataset).__name__.strip("_").removesuffix("Dataset")
    found = [
        (position, [*names, name])
        for source in _inputs(dataset)
        for position, names in _names_behind(source)
    ]
    if found and leaves_order_open(dataset):
        return [(position, [*names, "Unordered"]) for position, names in found]
    return found


def _dataset_read(elements: Any) -> Any:
    """Return the dataset of an iterator, or of what `tfds.as_numpy` or tf.distribute made of one.

    Anything else is returned as it is.
    """
    any_dataset = tensorflow().data.Dataset
    if not isinstance(elements, any_dataset):
        for name in ("_dataset", "_ds", "_original_dataset"):
            dataset = getattr(elements, name, None)
            if isinstance(dataset, any_dataset):
                return dataset
    return elements


def _inputs(dataset: Any) -> Iterator[Any]:
    inputs = getattr(dataset, "_inputs", None)
    yield from inputs() if callable(inputs) else ()
