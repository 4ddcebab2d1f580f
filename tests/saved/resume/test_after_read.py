"""The calls behind the reader: each takes the arguments of tf.data by their names."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from shardctl.saved.resume_plan import (
    CALLS,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    ShardCall,
    ShuffleCall,
    TakeCall,
    calls_chained,
)


def test_each_call_is_a_method_of_a_dataset(tf: Any) -> None:
    for call in CALLS:
        assert callable(getattr(tf.data.Dataset, call.call))
    assert len({call.call for call in CALLS}) == len(CALLS)


@pytest.mark.parametrize("call", [ShardCall, ShuffleCall, TakeCall, BatchCall])
def test_arguments_are_those_of_tf_data(call: Any, tf: Any) -> None:
    arguments = inspect.signature(getattr(tf.data.Dataset, call.call)).parameters
    names = {field.name for field in dataclasses.fields(call)}
    assert names - {"skip_instructions"} <= arguments.keys()


def test_a_call_can_be_made_of_its_fields(tf: Any) -> None:
    numbers = tf.data.Dataset.range(10)
    calls: list[AfterRead] = [
        ShardCall(num_shards=3, index=1),
        TakeCall(count=2),
        BatchCall(batch_size=2, drop_remainder=True),
    ]
    for call in calls:
        fields = dataclasses.asdict(call)
        assert not fields.pop("skip_instructions", 0)
        numbers = getattr(numbers, call.call)(**fields)
    assert [batch.tolist() for batch in numbers.as_numpy_iterator()] == [[1, 4]]


SHUFFLE = ShuffleCall(buffer_size=9, seed=None)
EPOCHS = ConcatenateCall(first_epoch=1, last_epoch=3)
BATCH = BatchCall(batch_size=4, drop_remainder=False)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ((), ""),
        (
            (ShardCall(num_shards=3, index=1), SHUFFLE, EPOCHS, BATCH),
            ".shard(3, 1).shuffle(9, seed=None).concatenate(epochs 1 to 3).batch(4)",
        ),
        (
            (ShardCall(num_shards=3, index=1, skip_instructions=2), TakeCall(count=5)),
            ".shard(3, 1) of all but the first 2 instructions, which are this host's alone, "
            "then .take(5)",
        ),
    ],
)
def test_calls_are_chained_where_they_can_be_typed(
    calls: tuple[AfterRead, ...], words: str
) -> None:
    assert calls_chained(calls) == words
