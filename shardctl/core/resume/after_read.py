"""What a pipeline does behind the reader of a plan: calls of tf.data with their arguments.

As text a call is as it would be typed, and in words what tf.data has no argument for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardCall:
    """`ds.shard(num_shards, index)` of what all but the first `skip_instructions` read.

    Those first ones hold examples of this host alone, which are not split among the hosts again.
    """

    call: ClassVar[str] = "shard"

    num_shards: int
    index: int
    skip_instructions: int = 0

    def __str__(self) -> str:
        words = f"shard({self.num_shards}, {self.index})"
        if not self.skip_instructions:
            return words
        return (
            f"{words} of all but the first {self.skip_instructions} instructions, "
            "which are this host's alone"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleCall:
    """`ds.shuffle(buffer_size, seed)`: a buffer that is filled anew."""

    call: ClassVar[str] = "shuffle"

    buffer_size: int
    seed: int | None

    def __str__(self) -> str:
        return f"shuffle({self.buffer_size}, seed={self.seed})"


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeCall:
    """`ds.take(count)`: the rest of a stream that has no end of its own."""

    call: ClassVar[str] = "take"

    count: int

    def __str__(self) -> str:
        return f"take({self.count})"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcatenateCall:
    """`ds.concatenate` with each of the epochs `first_epoch` to `last_epoch`, both included."""

    call: ClassVar[str] = "concatenate"

    first_epoch: int
    last_epoch: int

    def __str__(self) -> str:
        return f"concatenate(epochs {self.first_epoch} to {self.last_epoch})"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchCall:
    """`ds.batch(batch_size, drop_remainder)`."""

    call: ClassVar[str] = "batch"

    batch_size: int
    drop_remainder: bool

    def __str__(self) -> str:
        drop = ", drop_remainder=True" if self.drop_remainder else ""
        return f"batch({self.batch_size}{drop})"


AfterRead = ShardCall | ShuffleCall | TakeCall | ConcatenateCall | BatchCall
CALLS: tuple[type[AfterRead], ...] = get_args(AfterRead)


def calls_chained(calls: tuple[AfterRead, ...]) -> str:
    """Return calls one behind the other, "" for none.

    >>> calls_chained((TakeCall(count=9), BatchCall(batch_size=2, drop_remainder=True)))
    '.take(9).batch(2, drop_remainder=True)'
    """
    in_words = any(isinstance(call, ShardCall) and call.skip_instructions for call in calls)
    return (", then " if in_words else "").join(f".{call}" for call in calls)
