"""Distinct values: those of a set, in ascending order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.arrays import distinct


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
