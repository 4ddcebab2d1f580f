"""The calls behind the reader as words."""

from __future__ import annotations

from typing import assert_never

from shardctl.core.resume.after_read import (
    AfterRead,
    BatchCall,
    ConcatenateCall,
    ShardCall,
    ShuffleCall,
    TakeCall,
)


def call_words(call: AfterRead) -> str:
    """Return a call as it would be typed, and in words what tf.data has no argument for.

    >>> call_words(BatchCall(batch_size=32, drop_remainder=True))
    'batch(32, drop_remainder=True)'
    >>> call_words(ShardCall(num_shards=3, index=1, skip_instructions=2))
    "shard(3, 1) of all but the first 2 instructions, which are this host's alone"
    """
    match call:
        case ShardCall():
            words = f"shard({call.num_shards}, {call.index})"
            if not call.skip_instructions:
                return words
            return (
                f"{words} of all but the first {call.skip_instructions} instructions, "
                "which are this host's alone"
            )
        case ShuffleCall():
            return f"shuffle({call.buffer_size}, seed={call.seed})"
        case TakeCall():
            return f"take({call.count})"
        case ConcatenateCall():
            return f"concatenate(epochs {call.first_epoch} to {call.last_epoch})"
        case BatchCall():
            drop = ", drop_remainder=True" if call.drop_remainder else ""
            return f"batch({call.batch_size}{drop})"
        case _:
            assert_never(call)


def calls_chained(calls: tuple[AfterRead, ...]) -> str:
    """Return calls one behind the other, "" for none.

    >>> from shardctl.core.resume.after_read import TakeCall
    >>> calls_chained((TakeCall(count=9), BatchCall(batch_size=2, drop_remainder=False)))
    '.take(9).batch(2)'
    """
    in_words = any(isinstance(call, ShardCall) and call.skip_instructions for call in calls)
    return (", then " if in_words else "").join(f".{call_words(call)}" for call in calls)
