"""The table of calls beside tf.data: every name and argument is one there."""

from __future__ import annotations

import inspect

import pytest

from shardctl.errors import UsageError
from shardctl.stages import stages as ast
from shardctl.stages.calls import CALLS, call_named
from shardctl.stages.part import OfTensorflow, Stage
from tests.cases import counted

# What is ours: a source of TFDS, a list of values, and what stands for a stage that is not known.
OWN = {
    "generator",
    "interleave_datasets",
    "pad",
    "opaque",
    "opaque_source",
    "read",
    "shared",
    "values",
}
FUNCTIONS = {"assert_cardinality", "group_by_reducer"}  # of tf.data.experimental, for `apply`
FILES = {"TFRecordDataset", "TextLineDataset"}
OURS = {"kept", "weights_dtype", "fusion", "optimizations", "warm_start", "deterministic"}
STAGES: list[Stage] = [
    ast.Shuffle(buffer=-2, seed=3, reshuffle=False),
    ast.Repeat(count=3),
    ast.Repeat(),
    ast.Batch(size=4, drop_remainder=True),
    ast.Unbatch(),
    ast.Shard(num_shards=3, index=1),
    ast.Take(count=-1),
    ast.Skip(count=2),
    ast.Cache(),
    ast.Map(calls="auto", deterministic=True),
    ast.Prefetch(),
    ast.Prefetch(size=3),
]


def test_the_calls_and_their_arguments_are_those_of_tensorflow() -> None:
    import tensorflow as tf

    for name, call in counted(CALLS.items()):
        assert call.name == name
        if name in OWN:
            continue
        place = tf.data if name in FILES else tf.data.Dataset
        place = tf.data.experimental if name in FUNCTIONS else place
        real = inspect.signature(getattr(place, name)).parameters
        placed = [p for p in call.parameters if not p.by_name]
        theirs = [one for one in real if one not in ("self", "name", "args", "kwargs")]
        for parameter, other in zip(placed, theirs, strict=False):
            assert other in (parameter.name, *parameter.others), (name, other)
        for parameter in call.parameters:
            known = {parameter.name, *parameter.others}
            assert known & set(theirs) or known & OURS or not theirs, (name, parameter.name)


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_a_stage_is_a_method_that_takes_its_arguments(stage: Stage) -> None:
    import tensorflow as tf

    call = stage.in_tf()
    assert call is not None
    method = inspect.signature(getattr(tf.data.Dataset, call.method))
    method.bind(None, *[len] * call.takes_function, *call.by_place, **call.by_name)
    for value in (*call.by_place, *call.by_name.values()):
        if isinstance(value, OfTensorflow):
            assert getattr(tf.data, value.removeprefix("data.")) in (-1, -2)


def test_options_and_what_is_no_method() -> None:
    import tensorflow as tf

    for attribute in ast.WithOptions.attributes.values():
        found = tf.data.Options()
        for name in attribute.split("."):
            found = getattr(found, name)
    assert ast.Filter().in_tf() is ast.WithOptions(fusion=True).in_tf() is None


def test_what_is_open_is_no_stage_that_is_offered() -> None:
    for name, reason in ast.WHY_OPEN.items():
        assert reason[0].islower()
        assert not CALLS[name].is_offered if name in CALLS else "(" in name
    with pytest.raises(UsageError) as caught:
        call_named("Xyz", CALLS)
    assert str(caught.value).startswith("no stage 'Xyz'; stages: shuffle,")
    assert "; sources: read, range, generator, counter, pad, values, zip, " in str(caught.value)
    assert "opaque" not in str(caught.value)
