"""Long arrays: distinct values, sums that do not wrap, runs; and what becomes an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arrays import (
    EqualByItems,
    Int64s,
    chosen,
    constant,
    distinct,
    exact_sum,
    is_ascending,
    is_constant,
    joined_constants,
    last_not_above,
    pieces,
    run_of,
    whole_numbers,
)
from shardctl.errors import UsageError


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_values_and_sums_are_those_of_python(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert distinct(array).tolist() == sorted(set(values))
    assert distinct(array).dtype == np.int64
    assert (array.tolist(), exact_sum(array)) == (values, sum(values))
    assert whole_numbers(values).tolist() == values


def test_one_value_stays_one_value_where_all_are_the_same() -> None:
    fives = constant(5, 4)
    assert is_constant(chosen(fives, slice(1, None)))
    assert is_constant(chosen(fives, np.array([3, 0])))
    assert chosen(fives, slice(1, None)).tolist() == [5, 5, 5]
    assert is_constant(joined_constants([fives, constant(5, 1), constant(7, 0)]))
    assert joined_constants([fives, constant(6, 1)]).tolist() == [5, 5, 5, 5, 6]
    assert joined_constants([]).tolist() == []


@pytest.mark.parametrize("count", [2, 1 << 18, (1 << 18) + 1, 600_000])
def test_runs_and_ascents_are_seen_across_pieces(count: int) -> None:
    assert [i for piece in pieces(count) for i in range(piece.start, piece.stop)] == [*range(count)]
    run = np.arange(5, 5 + count)
    assert run_of(run) == slice(5, 5 + count)
    assert is_ascending(run)
    for place in {0, count // 2, count - 1, min(1 << 18, count - 1)}:
        broken = run.copy()
        broken[place] -= 1 if place else -1
        assert run_of(broken) is None
        assert not is_ascending(broken)


def test_numbers_of_every_type_become_one_array() -> None:
    numbers = [3, 0, 100, 3]
    array = np.array(numbers)
    mixed = [np.int8(3), np.uint64(0), np.array(100), 3]
    others = (array.astype(np.uint64), array.astype(">i4"), mixed)
    for values in (numbers, tuple(numbers), iter(numbers), array, *others):
        found = whole_numbers(values)
        assert (found.dtype, found.tolist()) == (np.dtype(np.int64), numbers)
    for number in (5, np.int32(5), np.array(5)):
        assert whole_numbers(number).tolist() == [5]
    nothings: list[Any] = [[], (), np.array([]), range(0)]
    for nothing in nothings:
        assert whole_numbers(nothing).dtype == np.int64
        assert whole_numbers(nothing).shape == (0,)
    assert np.shares_memory(whole_numbers(array), array)


@pytest.mark.parametrize(
    "values",
    [
        *([1.0], np.array([1.5]), np.array(1.0), 1.5, "1", ["1"], np.array(["1"]), None, [None]),
        *([True, 2], True, np.array([True]), np.array([[1]]), [[1], [2, 3]], {1: 2}, object()),
        *([2**63], 2**63, np.array([2**63], np.uint64), [-(2**63) - 1], [10**5000]),
        np.array(["1970-01-02"], "datetime64[D]"),
    ],
)
def test_what_an_int64_does_not_hold_as_it_is_is_refused(values: Any) -> None:
    with pytest.raises(UsageError, match="needed"):
        whole_numbers(values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns(EqualByItems):
    name: str
    column: Int64s | None


def test_dataclasses_of_arrays_are_equal_where_all_items_are() -> None:
    one = Columns(name="a", column=np.array([1, 2]))
    assert one == Columns(name="a", column=np.array([1, 2]))
    assert one != Columns(name="b", column=np.array([1, 2]))
    for column in (np.array([1, 3]), np.array([1, 2, 2]), None):
        other = Columns(name="a", column=column)
        assert one != other
        assert other != one
    assert one != "a"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_the_last_not_above_is_found_however_numbers_are_spaced() -> None:
    generator = np.random.default_rng(0)
    evenly = np.arange(3000) * 1_281_167 // 1024
    spaced = {
        "even": np.arange(5000) * 7,
        "off by one": evenly,
        "far from nothing": evenly - 2**62,
        "as far apart as can be": np.linspace(-(2.0**62), 2.0**62, 3000).astype(np.int64),
        "random": np.sort(generator.integers(0, 10**12, 3000)),
        "many alike": np.sort(generator.integers(0, 40, 3000)),
        "all alike": np.full(3000, 5),
        "one far off": np.append(np.arange(3000), 10**15),
        "even but for the end": np.append(np.arange(3000) * 9, 26_992),
        "few": np.array([0, 10, 10, 25]),
        "one": np.array([3]),
        "steps": np.arange(3000) // 3000 + np.arange(3000) // 1500,
    }
    for name, ascending in spaced.items():
        low, high = int(ascending[0]) - 3, int(ascending[-1]) + 3
        for values in (
            generator.integers(low, high, 4000),
            generator.integers(low, high, (3, 2000)),
            np.concatenate([ascending, ascending - 1, ascending + 1]),
            generator.integers(low, high, 5),
            np.tile([-(2**63), -1, 0, 1, 2**63 - 1], 1000),
        ):
            expected = np.searchsorted(ascending, values, side="right") - 1
            assert np.array_equal(last_not_above(ascending, values), expected), name
