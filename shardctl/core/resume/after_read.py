"""What a pipeline does behind the reader of a plan: calls of tf.data with their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardCall:
    """`ds.shard(num_shards, index)` of what all but the first `skip_instructions` read.

    Those first ones hold examples of this host alone, which are not split among the hosts again.
    """

    call: ClassVar[str] = "shard"

    num_shards: int
    index: int
    skip_instructions: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleCall:
    """`ds.shuffle(buffer_size, seed)`: a buffer that is filled anew."""

    call: ClassVar[str] = "shuffle"

    buffer_size: int
    seed: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeCall:
    """`ds.take(count)`: the rest of a stream that has no end of its own."""

    call: ClassVar[str] = "take"

    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcatenateCall:
    """`ds.concatenate` with each of the epochs `first_epoch` to `last_epoch`, both included."""

    call: ClassVar[str] = "concatenate"

    first_epoch: int
    last_epoch: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchCall:
    """`ds.batch(batch_size, drop_remainder)`."""

    call: ClassVar[str] = "batch"

    batch_size: int
    drop_remainder: bool


AfterRead = ShardCall | ShuffleCall | TakeCall | ConcatenateCall | BatchCall
CALLS: tuple[type[AfterRead], ...] = (
    ShardCall,
    ShuffleCall,
    TakeCall,
    ConcatenateCall,
    BatchCall,
)
