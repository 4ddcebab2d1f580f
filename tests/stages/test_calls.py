"""The table of calls: every name of tf.data that it says is one there, with those arguments."""

from __future__ import annotations

import inspect

import pytest

from shardctl.errors import UsageError
from shardctl.stages.calls import CALLS, call_named, name_alone
from shardctl.stages.stages import WHY_OPEN, Cache, Opaque
from tests.cases import counted

# What is ours: a source of TFDS, a list of values, and what stands for a stage that is not known.
OWN = {"read", "values", "shared", "opaque", "opaque_source"}
FUNCTIONS = {"assert_cardinality"}  # of tf.data.experimental, for `apply`
FILES = {"TFRecordDataset", "TextLineDataset"}
OURS = {"kept", "weights_dtype", "fusion", "optimizations", "warm_start", "deterministic"}


def test_the_calls_and_their_arguments_are_those_of_tensorflow() -> None:
    import tensorflow as tf

    for name, call in counted(CALLS.items()):
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


def test_what_is_open_is_no_stage_that_is_understood() -> None:
    for name, reason in WHY_OPEN.items():
        assert reason
        assert reason[0].islower()
        assert not CALLS[name].is_offered if name in CALLS else "(" in name


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        call_named("Shufle")
    assert str(caught.value).startswith("no stage 'Shufle'; did you mean shuffle? stages: shuffle,")
    assert "; sources: read, range, values, zip, sample_from_datasets," in str(caught.value)
    assert "opaque" not in str(caught.value)


def test_a_name_says_all_only_where_it_does() -> None:
    known = Opaque(call="scan", reason=WHY_OPEN["scan"])
    assert name_alone(known, is_source=False) == "scan"
    assert name_alone(known, is_source=True) is None
    assert name_alone(Opaque(call="scan", reason="x"), is_source=False) is None
    assert name_alone(Cache(), is_source=False) is None
