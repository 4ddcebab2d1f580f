"""Stages as calls of tf.data: the one table for the pipelines that are run and for their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shardctl.core.stages.stages import (
    Batch,
    Cache,
    Map,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Stage,
    Take,
    Unbatch,
)
from shardctl.core.tfds_rules import WHOLE_DATASET


class OfTensorflow(str):
    """A constant of TensorFlow by its name, as `data.AUTOTUNE`."""


AUTOTUNE = OfTensorflow("data.AUTOTUNE")
UNKNOWN_CARDINALITY = OfTensorflow("data.UNKNOWN_CARDINALITY")


@dataclass(frozen=True, kw_only=True)
class TfCall:
    """A method of `tf.data.Dataset` and its arguments: those by place, and those by name.

    takes_function: the first argument is a function of the script, which is not among them.
    """

    method: str
    by_place: tuple[Any, ...] = ()
    by_name: Mapping[str, Any]
    takes_function: bool = False


def call_of(stage: Stage) -> TfCall | None:
    """Return the call that a stage is, None where it is none of a method with plain arguments.

    >>> call_of(Shuffle(buffer=-2, seed=7)).by_place, call_of(Repeat()).by_place
    (('data.UNKNOWN_CARDINALITY',), ())
    """
    made = _CALLS.get(type(stage))
    return None if made is None else made(stage)


# What each field of WithOptions is among `tf.data.Options`.
OPTIONS: Mapping[str, str] = {
    "deterministic": "deterministic",
    "fusion": "experimental_optimization.shuffle_and_repeat_fusion",
    "optimizations": "experimental_optimization.apply_default_optimizations",
    "warm_start": "experimental_warm_start",
}


def _call(method: str, *by_place: Any, **by_name: Any) -> TfCall:
    """Return a call without the arguments by name that are None, which are TensorFlow's own."""
    given = {name: value for name, value in by_name.items() if value is not None}
    return TfCall(method=method, by_place=by_place, by_name=given)


def _shuffle(stage: Any) -> TfCall:
    return _call(
        "shuffle",
        UNKNOWN_CARDINALITY if stage.buffer == WHOLE_DATASET else stage.buffer,
        seed=stage.seed,
        reshuffle_each_iteration=stage.reshuffle,
    )


def _map(stage: Any) -> TfCall:
    calls = AUTOTUNE if stage.calls == "auto" else stage.calls
    arguments = {"num_parallel_calls": calls, "deterministic": stage.deterministic}
    given = {name: value for name, value in arguments.items() if value is not None}
    return TfCall(method="map", by_name=given, takes_function=True)


_CALLS: dict[type, Callable[[Any], TfCall]] = {
    Shuffle: _shuffle,
    Repeat: lambda stage: _call("repeat", *([] if stage.count is None else [stage.count])),
    Batch: lambda stage: _call("batch", stage.size, drop_remainder=stage.drop_remainder or None),
    Unbatch: lambda stage: _call("unbatch"),
    Shard: lambda stage: _call("shard", num_shards=stage.num_shards, index=stage.index),
    Take: lambda stage: _call("take", stage.count),
    Skip: lambda stage: _call("skip", stage.count),
    Cache: lambda stage: _call("cache"),
    Map: _map,
    Prefetch: lambda stage: _call("prefetch", AUTOTUNE if stage.size == "auto" else stage.size),
}
