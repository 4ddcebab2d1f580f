"""The table of calls beside tf.data itself: every argument is one that the method takes."""

from __future__ import annotations

import inspect

import pytest

from shardctl.stages.part import OfTensorflow, Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Filter,
    Map,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    WithOptions,
)

STAGES: list[Stage] = [
    Shuffle(buffer=-2, seed=3, reshuffle=False),
    Repeat(count=3),
    Repeat(),
    Batch(size=4, drop_remainder=True),
    Unbatch(),
    Shard(num_shards=3, index=1),
    Take(count=-1),
    Skip(count=2),
    Cache(),
    Map(calls="auto", deterministic=True),
    Prefetch(),
    Prefetch(size=3),
]


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_the_method_takes_the_arguments(stage: Stage) -> None:
    import tensorflow as tf

    call = stage.in_tf()
    assert call is not None
    method = inspect.signature(getattr(tf.data.Dataset, call.method))
    function = [len] if call.takes_function else []
    method.bind(None, *function, *call.by_place, **call.by_name)
    for value in (*call.by_place, *call.by_name.values()):
        if isinstance(value, OfTensorflow):
            module, name = value.split(".")
            assert getattr(getattr(tf, module), name) in (-1, -2)


def test_what_is_no_such_call_has_none() -> None:
    assert Filter().in_tf() is None
    assert WithOptions(fusion=True).in_tf() is None


def test_options_have_their_attributes() -> None:
    import tensorflow as tf

    for attribute in WithOptions.attributes.values():
        found = tf.data.Options()
        for name in attribute.split("."):
            assert hasattr(found, name)
            found = getattr(found, name)
