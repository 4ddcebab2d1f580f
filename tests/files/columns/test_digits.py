"""Digits as a matrix, beside `format`."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.core.columns import Numbers
from shardctl.files.rows_as_bytes import digits_of
from tests.cases import check_cases
from tests.columns import some_numbers


def _texts(numbers: Numbers) -> list[str]:
    return [bytes(row).replace(b"\0", b"").decode() for row in digits_of(numbers)]


def test_digits_are_those_of_format() -> None:
    def check(case: tuple[list[int], int]) -> None:
        values, num_digits = case
        array = np.array(values, np.int64)
        # `format` counts the sign as a digit, which no name has.
        expected = ["-" * (value < 0) + f"{abs(value):0{num_digits}d}" for value in values]
        assert _texts(Numbers(values=array, num_digits=num_digits)) == expected
        assert _texts(Numbers(values=array, grouped=True)) == [f"{value:,}" for value in values]

    check_cases(st.tuples(some_numbers(), st.integers(1, 20)), check, 60)


def test_every_number_of_few_digits_and_the_ends_of_int64() -> None:
    values = np.arange(-20_500, 120_000)
    assert _texts(Numbers(values=values)) == list(map(str, values.tolist()))
    ends = [2**63 - 1, -(2**63), 2**32, 2**32 - 1, 10**18, 10**18 - 1, 0]
    for some in (ends, [number for number in ends if number >= 0], [-(2**63)], [0], []):
        assert _texts(Numbers(values=np.array(some, np.int64))) == list(map(str, some))


def test_a_matrix_is_as_wide_as_its_longest_number() -> None:
    assert digits_of(Numbers(values=np.array([12345, 7]))).shape == (2, 5)
    assert digits_of(Numbers(values=np.array([12345, 7]), num_digits=7)).shape == (2, 7)
    assert digits_of(Numbers(values=np.array([1234567]), grouped=True)).tobytes() == b"1,234,567"
