from __future__ import annotations

import gc
from collections.abc import Callable
from random import Random
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings

from shardctl.errors import UsageError
from shardctl.tfdata.interleave import Interleave
from tests.cases import FUZZ, counted, in_this_run, random_of_a_fuzz_run
from tests.tfdata.interleave.interleave_cases import (
    Case,
    cases,
    ids_by_hand,
    interleave,
    pairs_by_hand,
    random_case,
    tensorflow_order,
)


def test_reads_the_example_of_the_tensorflow_documentation() -> None:
    # tf.data.Dataset.interleave: range(1, 6), each repeated 6 times, cycle_length 2, block_length 4
    expected = "111122221122333344443344555555"
    order = Interleave([6] * 5, cycle_length=2, block_length=4)
    shards, _ = order.locate(np.arange(30))
    assert "".join(str(shard + 1) for shard in shards) == expected


@pytest.mark.long
@settings(max_examples=in_this_run(150), deadline=None)
@given(cases())
def test_positions_are_those_of_the_machine_played_by_hand(case: Case) -> None:
    order = interleave(case)
    expected = pairs_by_hand(case)
    shards, offsets = order.locate(np.arange(order.num_examples))
    assert list(zip(shards.tolist(), offsets.tolist(), strict=True)) == expected
    positions = order.position([s for s, _ in expected], [o for _, o in expected])
    assert positions.tolist() == list(range(len(expected)))


@settings(max_examples=in_this_run(100), deadline=None)
@given(cases())
def test_a_block_longer_than_every_shard_reads_shard_by_shard(case: Case) -> None:
    order = Interleave(
        case.lengths,
        cycle_length=case.cycle_length,
        block_length=max(case.lengths, default=0) + 1,
    )
    shards, _ = order.locate(np.arange(order.num_examples))
    assert shards.tolist() == [s for s, length in enumerate(case.lengths) for _ in range(length)]


def _check_every(rng: Random) -> None:
    """Compare every so manieth id, in pieces of all sizes, with the slice that is read by hand."""
    case = random_case(rng)
    order, by_hand = interleave(case), ids_by_hand(case)
    step = rng.choice((1, 2, 5, 31, 32, 33, 99, 100, 101, 3000))
    stop = rng.randint(0, order.num_examples)
    start = rng.randint(0, stop)
    found = order.read_every(step, start, stop, case.first_ids)
    assert found.tolist() == by_hand[start:stop:step], f"{case}, {step}, {start}, {stop}"


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_every_so_manieth_id_is_that_of_the_slice(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    module = "shardctl.tfdata.interleave"
    monkeypatch.setattr(f"{module}._LOOKED_UP", size)
    monkeypatch.setattr(f"{module}._READ", size)
    for case in counted(range(200)):
        _check_every(Random(case))


@pytest.mark.fuzz
def test_many_more_ids_are_those_of_slices() -> None:
    random = random_of_a_fuzz_run()
    for _ in counted(range(FUZZ)):
        _check_every(random)


def test_many_shards_are_located_as_their_slices_are_read() -> None:
    # Two ways of the code against each other, at a size the slow oracle cannot play.
    lengths = np.random.default_rng(0).integers(0, 60, 200_000)
    first_ids = np.cumsum(lengths) - lengths
    order = Interleave(lengths, cycle_length=16, block_length=16)
    total = order.num_examples
    for start in (0, total // 3, total - 60_000):
        shards, offsets = order.locate(np.arange(start, start + 60_000))
        ids = order.read(start, start + 60_000, first_ids)
        np.testing.assert_array_equal(ids, first_ids[shards] + offsets)
    whole = order.read(0, total, first_ids)
    assert np.bincount(whole, minlength=total).max() == 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda _: Interleave([1], cycle_length=0, block_length=1), "cycle_length 0"),
        (lambda _: Interleave([1], cycle_length=1, block_length=-2), "block_length -2"),
        (lambda _: Interleave([1, -3], cycle_length=1, block_length=1), "-3 examples"),
        (lambda _: Interleave([1.5], cycle_length=1, block_length=1), "lengths: "),
        (lambda order: order.locate([0, 5]), "position 5: there are 5"),
        (lambda order: order.locate([-1]), "position -1: there are 5"),
        (lambda order: order.position([2], [0]), "shard 2: there are 2"),
        (lambda order: order.position([1], [2]), "offset 2: shard 1 yields 2 examples"),
        (lambda order: order.position([1], []), "1 shards, 0 offsets"),
        (lambda order: order.read(0, 6, [0, 0]), r"\[0, 6\): a range lies in \[0, 5\]"),
        (lambda order: order.read(3, 2, [0, 0]), r"\[3, 2\)"),
        (lambda order: order.read(0, 5, [0]), "1 first_ids: there are 2 shards"),
        (lambda order: order.read(-1, 5, [0, 0]), r"\[-1, 5\)"),
        (lambda order: order.state(6), r"\[6, 6\)"),
        (lambda order: order.continuation(-1), r"\[-1, -1\)"),
    ],
)
def test_an_error_names_the_value_and_the_rule(
    ask: Callable[[Interleave], object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ask(Interleave([3, 2], cycle_length=2, block_length=2))


def test_an_interleave_keeps_its_own_lengths() -> None:
    lengths = np.array([3, 2])
    order = Interleave(lengths, cycle_length=2, block_length=2)
    lengths[:] = 0
    assert order.continuation(0)[2].tolist() == [3, 2]


def check_against_tensorflow(tf: Any, num_cases: int, random: Random) -> None:
    for number in counted(range(num_cases)):
        case = random_case(random)
        parallel = random.choice((None, None, 1, case.cycle_length))
        ranges = list(zip(case.first_ids, case.lengths, strict=True))
        expected = tensorflow_order(tf, ranges, case, parallel)
        ids = interleave(case).read(0, case.num_examples, case.first_ids)
        assert ids.tolist() == expected, (number, case, parallel)


def test_the_order_is_that_of_tensorflow(tf: Any) -> None:
    check_against_tensorflow(tf, 40, Random(1))


@pytest.mark.fuzz
def test_the_order_is_that_of_tensorflow_in_many_cases(tf: Any) -> None:
    check_against_tensorflow(tf, FUZZ, random_of_a_fuzz_run())


def test_the_order_is_that_of_tensorflow_at_the_size_of_imagenet(tf: Any) -> None:
    lengths = tuple(1251 + (shard % 8 == 0) for shard in range(1024))
    case = Case(lengths=lengths, cycle_length=16, block_length=16)
    first_ids = (np.cumsum(lengths) - lengths).tolist()
    expected = tensorflow_order(tf, list(zip(first_ids, lengths, strict=True)), case)
    assert interleave(case).read(0, case.num_examples, first_ids).tolist() == expected


@pytest.mark.long
def test_many_shards_that_are_read_alike_have_one_schedule_while_it_is_in_use() -> None:
    lengths = np.random.default_rng(0).integers(0, 40, 5000)
    first = Interleave(lengths, cycle_length=7, block_length=3)
    again = Interleave(lengths, cycle_length=7, block_length=3)
    assert again._schedule is first._schedule
    others = [
        Interleave(lengths, cycle_length=8, block_length=3),
        Interleave(lengths, cycle_length=7, block_length=4),
        Interleave(lengths[::-1], cycle_length=7, block_length=3),
        Interleave(lengths[:-1], cycle_length=7, block_length=3),
    ]
    assert all(other._schedule is not first._schedule for other in others)
    unused = ref(first._schedule)
    del first, again
    gc.collect()
    assert unused() is None
    lengths[0] += 1
    changed = Interleave(lengths, cycle_length=7, block_length=3)
    assert changed.num_examples == int(lengths.sum())
