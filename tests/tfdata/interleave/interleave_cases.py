"""Cases of interleaves for the laws, and what TensorFlow itself makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from shardctl.tfdata.interleave import Interleave
from tests.oracles import interleave_by_hand

# TensorFlow's parallel interleave doubles the block length in 63 bits.
BLOCK_LENGTHS = (1, 1, 2, 3, 4, 5, 7, 8, 16, 50, 2**40)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An interleave of shards of these lengths."""

    lengths: tuple[int, ...]
    cycle_length: int
    block_length: int

    @property
    def num_examples(self) -> int:
        return sum(self.lengths)

    @property
    def first_ids(self) -> list[int]:
        """Ids that tell the shards apart and have gaps between them."""
        return [shard * 1000 - 500 for shard in range(len(self.lengths))]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case: empty shards, more slots than shards, blocks longer than shards among them."""
    longest = draw(st.sampled_from((0, 1, 2, 5, 12, 40)))
    lengths = draw(st.lists(st.integers(0, longest) | st.sampled_from((0, longest)), max_size=40))
    return Case(
        lengths=tuple(lengths),
        cycle_length=draw(st.integers(1, len(lengths) + 3)),
        block_length=draw(st.sampled_from((*BLOCK_LENGTHS, longest + 1, max(1, longest)))),
    )


def random_case(random: Random) -> Case:
    """Return a case as `cases` draws them, without the cost of a search for small ones."""
    longest = random.choice((0, 1, 2, 5, 12, 40))
    num_shards = random.choice((0, 1, 2, 3, 5, 8, 13, 30, 60))
    lengths = [
        random.choice((0, longest, *(random.randint(0, longest) for _ in range(3))))
        for _ in range(num_shards)
    ]
    return Case(
        lengths=tuple(lengths),
        cycle_length=random.randint(1, num_shards + 3),
        block_length=random.choice((*BLOCK_LENGTHS, longest + 1, max(1, longest))),
    )


def tensorflow_order(
    tf: Any, ranges: Sequence[tuple[int, int]], case: Case, parallel: int | None = None
) -> list[int]:
    """Return the ids that tf.data reads from ranges (first id, count) with a case's interleave."""
    starts = tf.constant([start for start, _ in ranges], dtype=tf.int64)
    counts = tf.constant([count for _, count in ranges], dtype=tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices((starts, counts)).interleave(
        lambda start, count: tf.data.Dataset.range(start, start + count),
        cycle_length=case.cycle_length,
        block_length=case.block_length,
        num_parallel_calls=parallel,
        deterministic=None if parallel is None else True,
    )
    # One array instead of one call an example.
    return [int(x) for batch in dataset.batch(1 << 16).as_numpy_iterator() for x in batch]


def interleave(case: Case) -> Interleave:
    """Return the interleave of a case."""
    return Interleave(case.lengths, cycle_length=case.cycle_length, block_length=case.block_length)


def pairs_by_hand(case: Case) -> list[tuple[int, int]]:
    """Return (shard, offset) at each position, by playing the machine."""
    return interleave_by_hand(case.lengths, case.cycle_length, case.block_length)


def ids_by_hand(case: Case) -> list[int]:
    """Return the id at each position, by playing the machine."""
    return [case.first_ids[shard] + offset for shard, offset in pairs_by_hand(case)]
