"""Long arrays: what becomes one, and distinct values, those of a set, in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.arrays import distinct, whole_numbers
from shardctl.errors import UsageError


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_values_are_those_of_a_set_in_order(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@pytest.mark.parametrize("values", [[], [7], [7, 7]])
def test_few_values_are_no_special_case(values: list[int]) -> None:
    found = distinct(np.array(values, np.int64))
    assert found.tolist() == values[:1]
    assert found.dtype == np.int64


def test_the_values_given_stay_as_they_are() -> None:
    values = np.array([3, 1, 3])
    distinct(values)
    assert values.tolist() == [3, 1, 3]


NUMBERS = [3, 0, 100, 3]


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS,
        tuple(NUMBERS),
        iter(NUMBERS),
        np.array(NUMBERS),
        np.array(NUMBERS, np.uint64),
        [np.int8(3), np.uint64(0), np.array(100), 3],
        np.array(NUMBERS, ">i4"),
    ],
)
def test_numbers_of_every_type_become_one_array(values: Any) -> None:
    found = whole_numbers(values)
    assert (found.dtype, found.tolist()) == (np.dtype(np.int64), NUMBERS)


def test_a_number_is_an_array_of_one_and_nothing_an_empty_one() -> None:
    for number in (5, np.int32(5), np.array(5)):
        assert whole_numbers(number).tolist() == [5]
    nothings: list[Any] = [[], (), np.array([]), range(0)]
    for nothing in nothings:
        assert whole_numbers(nothing).dtype == np.int64
        assert whole_numbers(nothing).shape == (0,)


def test_an_array_of_int64_is_not_copied() -> None:
    values = np.arange(5)
    assert np.shares_memory(whole_numbers(values), values)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_kept(number: int) -> None:
    assert whole_numbers([number]).tolist() == [number]


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
