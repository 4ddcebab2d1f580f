"""The calls behind the reader as the table says them."""

from __future__ import annotations

import pytest

from shardctl.core.resume.after_read import (
    AfterRead,
    BatchCall,
    ConcatenateCall,
    ShardCall,
    ShuffleCall,
    TakeCall,
)
from shardctl.rendering.text.after_read import calls_chained

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
