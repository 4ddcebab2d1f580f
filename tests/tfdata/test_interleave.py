"""Interleaves: positions, stretches, states and continuations, by hand and against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arrays import Int64s
from shardctl.tfdata import interleave as module
from shardctl.tfdata.interleave import Interleave, Rounds, interleave_of, opening_keys
from tests.cases import FUZZ, counted, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_evaluated
from tests.tfdata.shuffle_oracles import interleave_by_hand

# TensorFlow's parallel interleave doubles the block length in 63 bits.
BLOCK_LENGTHS = (1, 1, 2, 3, 4, 5, 7, 8, 16, 50, 2**40)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An interleave of shards of these lengths."""

    lengths: tuple[int, ...]
    cycle_length: int
    block_length: int

    @property
    def first_ids(self) -> Int64s:
        """Ids that tell the shards apart and have gaps between them."""
        return np.arange(len(self.lengths)) * 1000 - 500

    @property
    def interleave(self) -> Interleave:
        sizes = {"cycle_length": self.cycle_length, "block_length": self.block_length}
        return Interleave(self.lengths, **sizes)

    @property
    def pairs_by_hand(self) -> list[tuple[int, int]]:
        """(shard, offset) at each position, by playing the machine."""
        return interleave_by_hand(self.lengths, self.cycle_length, self.block_length)

    @property
    def ids_by_hand(self) -> list[int]:
        return [int(self.first_ids[shard]) + offset for shard, offset in self.pairs_by_hand]


def random_case(random: Random) -> Case:
    """Draw empty shards, more slots than shards, blocks longer than shards among others."""
    longest = random.choice((0, 1, 2, 5, 12, 40))
    num_shards = random.choice((0, 1, 2, 3, 5, 8, 13, 30, 60))
    lengths = [
        random.choice((0, longest, *(random.randint(0, longest) for _ in range(3))))
        for _ in range(num_shards)
    ]
    return Case(
        lengths=tuple(lengths),
        cycle_length=random.choice((1, random.randint(1, num_shards + 3))),
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


def rest_after(case: Case, consumed: int) -> list[tuple[int, int, int]]:
    columns = case.interleave.continuation(consumed)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check_by_hand(random: Random) -> None:
    """Compare positions, stretches, every so-manyth id and the rest with the machine played."""
    case = random_case(random)
    order, pairs, ids = case.interleave, case.pairs_by_hand, case.ids_by_hand
    shards, offsets = order.locate(np.arange(order.num_examples))
    assert list(zip(shards.tolist(), offsets.tolist(), strict=True)) == pairs, case
    assert order.position(shards, offsets).tolist() == list(range(len(pairs))), case
    assert order.read(0, order.num_examples, case.first_ids).tolist() == ids, case
    stop = random.randint(0, len(ids))
    start = random.randint(0, stop)
    found = order.read(start, stop, case.first_ids)
    assert found.tolist() == ids[start:stop], (case, start, stop)
    assert found.dtype == np.int64
    step = random.choice((1, 2, 5, 31, 32, 33, 99, 100, 101, 3000))
    every = order.read_every(step, start, stop, case.first_ids).tolist()
    assert every == ids[start:stop:step], (case, step, start, stop)
    for consumed in {0, start, stop, len(ids)}:
        rest = rest_after(case, consumed)
        takes = [take for _, _, take in rest]
        again = interleave_by_hand(takes, case.cycle_length, case.block_length)
        assert [(rest[i][0], rest[i][1] + j) for i, j in again] == pairs[consumed:], case


# Blocks are laid out whole or as runs, ids looked up or read, in pieces: each way must be alike.
@pytest.mark.parametrize("longest_dense_block", [0, 4, 1 << 10])
@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_every_way_to_read_is_that_of_the_machine_played_by_hand(
    longest_dense_block: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_DENSE_BLOCK", longest_dense_block)
    for name in ("_PIECE", "_LOOKED_UP", "_READ"):
        monkeypatch.setattr(module, name, piece)
    for number in counted(range(60)):
        random = Random(f"{number} {longest_dense_block} {piece}")
        if longest_dense_block > 4:  # laid out whole, blocks of 2**40 fill the memory
            monkeypatch.setattr(f"{__name__}.BLOCK_LENGTHS", (1, 2, 3, 8, 50))
        check_by_hand(random)


def test_reads_the_example_of_the_tensorflow_documentation() -> None:
    # tf.data.Dataset.interleave: range(1, 6), each repeated 6 times, cycle_length 2, block_length 4
    shards, _ = Interleave([6] * 5, cycle_length=2, block_length=4).locate(np.arange(30))
    assert "".join(str(shard + 1) for shard in shards) == "111122221122333344443344555555"


def test_lengths_beyond_pieces_and_32_bits_are_read_on() -> None:
    length = (1 << 14) + 5  # a run of ids is counted on in pieces
    order = Interleave([length, 2], cycle_length=10**12, block_length=1 << 62)
    assert order.read(0, length + 2, np.array([0, -9])).tolist() == [*range(length), -9, -8]
    # Two ways of the code against each other, at a size the slow oracle cannot play.
    lengths = np.random.default_rng(0).integers(0, 60, 200_000)
    first_ids = np.cumsum(lengths) - lengths
    order = Interleave(lengths, cycle_length=16, block_length=16)
    total = order.num_examples
    for start in (0, total // 3, total - 60_000):
        shards, offsets = order.locate(np.arange(start, start + 60_000))
        ids = order.read(start, start + 60_000, first_ids)
        np.testing.assert_array_equal(ids, first_ids[shards] + offsets)
    assert np.bincount(order.read(0, total, first_ids), minlength=total).max() == 1
    lengths[:] = 0  # an interleave keeps its own
    assert order.num_examples == total


def test_the_continuation_lists_slots_then_unopened_shards() -> None:
    case = Case(lengths=(3, 5, 3), cycle_length=2, block_length=2)
    assert rest_after(case, 1) == [(0, 1, 1), (1, 0, 5), (0, 2, 1), (2, 0, 3)]  # a cut block
    assert rest_after(case, 8) == [(2, 1, 1), (1, 4, 1), (2, 2, 1)]
    assert rest_after(case, 11) == []


def test_states_are_these_and_wrong_arguments_refused() -> None:
    assert_evaluated(globals(), "interleave")


def check_against_tensorflow(tf: Any, num_cases: int, random: Random) -> None:
    """Compare a whole pass of TensorFlow, and its pass over the continuation."""
    for number in counted(range(num_cases)):
        case = random_case(random)
        parallel = random.choice((None, None, 1, case.cycle_length))
        ranges = list(zip(case.first_ids.tolist(), case.lengths, strict=True))
        whole = tensorflow_order(tf, ranges, case, parallel)
        ids = case.interleave.read(0, sum(case.lengths), case.first_ids)
        assert ids.tolist() == whole, (number, case, parallel)
        consumed = random.randint(0, len(whole))
        ranges = [(int(case.first_ids[s]) + k, take) for s, k, take in rest_after(case, consumed)]
        assert tensorflow_order(tf, ranges, case) == whole[consumed:], (number, case, consumed)


@fuzzed(25)
def test_the_order_is_that_of_tensorflow(tf: Any, num_cases: int) -> None:
    random = random_of_a_fuzz_run() if num_cases == FUZZ else Random(1)
    check_against_tensorflow(tf, num_cases, random)


def test_shards_that_are_read_alike_have_one_interleave_while_it_is_in_use() -> None:
    lengths = np.random.default_rng(0).integers(0, 40, 5000)
    first = interleave_of(lengths, cycle_length=7, block_length=3)
    assert interleave_of(lengths.copy(), cycle_length=7, block_length=3) is first
    for other, cycle, block in (
        *((lengths, 8, 3), (lengths, 7, 4)),
        *((lengths[::-1], 7, 3), (lengths[:-1], 7, 3)),
    ):
        assert interleave_of(other, cycle_length=cycle, block_length=block) is not first


# When shards open, and the visits of slots.

# How lengths are drawn: alike, of two kinds, spread, most of them empty, few of them long.
_DRAWN: dict[str, Callable[[np.random.Generator, int], Int64s]] = {
    "one": lambda rng, n: np.full(n, 37),
    "alike": lambda rng, n: rng.integers(900, 1100, n),
    "two": lambda rng, n: rng.choice([1000, 1040], n),
    "spread": lambda rng, n: rng.integers(0, 20_000, n),
    "empty": lambda rng, n: rng.choice([0, 0, 0, 5000], n),
    "skewed": lambda rng, n: rng.lognormal(6, 1.5, n).astype(np.int64),
    "huge": lambda rng, n: rng.integers(2**40, 2**41, n),
}


def by_heap(lengths: Int64s, block_length: int, num_slots: int) -> list[int]:
    """Return the keys of the first visits, a shard at a time."""
    free = list(range(num_slots))
    visits = [length // block_length + 1 for length in lengths.tolist()]
    return [heapreplace(free, free[0] + count * num_slots) for count in visits]


@pytest.mark.parametrize("drawn", _DRAWN)
def test_shards_open_as_by_the_heap(drawn: str) -> None:
    for seed in range(60):
        random = Random(f"{drawn} {seed}")
        num_shards = random.choice((1, 2, 30, 300, 3000))
        num_slots = random.choice((1, 2, 3, 16, 24, 25, 64, 200, 1000))
        block_length = random.choice((1, 2, 16, 50, 5001))
        lengths = _DRAWN[drawn](np.random.default_rng(seed), num_shards)
        found = opening_keys(lengths, block_length, num_slots).tolist()
        assert found == by_heap(lengths, block_length, num_slots), (seed, num_slots, block_length)


def test_long_lists_and_free_keys_beyond_63_bits_open_as_by_the_heap() -> None:
    for num_slots in (20, 40, 700):  # alike for two pieces, then so far apart that batches are few
        rng = np.random.default_rng(num_slots)
        lengths = np.concatenate([rng.integers(900, 1100, 40_000), rng.integers(0, 9, 20_000) ** 5])
        assert opening_keys(lengths, 1, num_slots).tolist() == by_heap(lengths, 1, num_slots)
    lengths = np.array([2**56] * 100 + [2**60, 2**62])
    for shards in (lengths, lengths[::-1].copy(), lengths[:100]):
        assert opening_keys(shards, 1, 99).tolist() == by_heap(shards, 1, 99)


def test_slots_beyond_16_bits_are_told_apart() -> None:
    lengths = [number % 3 for number in range(65_900)]
    order = Interleave(lengths, cycle_length=65_600, block_length=2)
    shards, offsets = order.locate(np.arange(order.num_examples))
    pairs = interleave_by_hand(lengths, 65_600, 2)
    assert list(zip(shards.tolist(), offsets.tolist(), strict=True)) == pairs


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_visits_are_those_listed_one_by_one(stops: list[int]) -> None:
    slots = range(len(stops))
    visits = [(turn, slot) for turn in range(max(stops)) for slot in slots if turn < stops[slot]]
    found, every = Rounds.until(np.array(stops)), np.arange(len(visits))
    rounds, of_slots = found.places(every)
    assert list(zip(rounds.tolist(), of_slots.tolist(), strict=True)) == visits
    assert found.ordinals(rounds, of_slots).tolist() == every.tolist()


def test_rounds_that_take_63_bits_to_count_do_not_overflow() -> None:
    # Slot 0 alone from round 1 on: its ordinals are the rounds, and one more.
    found = Rounds.until(np.array([2**62, 1]))
    assert [x.tolist() for x in found.places(np.array([2**62]))] == [[2**62 - 1], [0]]
    assert found.ordinals(np.array([2**62 - 1]), np.array([0])).tolist() == [2**62]
