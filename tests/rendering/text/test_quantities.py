"""Quantities as people read them."""

import pytest

from shardctl.core.text import counted
from shardctl.rendering.text.quantities import (
    first_and_last,
    first_few,
    human_bytes,
    short_count,
)


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1023 * 1024, "1023.0 KiB"),
        (146_999_114_192, "136.9 GiB"),
        (13_619_139_599, "12.7 GiB"),
        (2**63 - 1, "8.0 EiB"),
        (2**80, "1048576.0 EiB"),
    ],
)
def test_bytes_take_the_largest_unit_of_which_there_is_one(num_bytes: int, text: str) -> None:
    assert human_bytes(num_bytes) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (0.5, "0.5"),
        (2 / 3, "0.667"),
        (99_999, "99,999"),
        (99_999.4, "99,999"),
        (99_999.6, "100 k"),
        (100_000, "100 k"),
        (999_499, "999 k"),
        (999_500, "1 M"),
        (1_281_167, "1.28 M"),
        (-1_281_167, "-1.28 M"),
        (10**12, "1 T"),
        (123 * 10**15, "123,000 T"),
    ],
)
def test_a_number_in_short_keeps_three_digits(count: float, text: str) -> None:
    assert short_count(count) == text


def test_a_noun_takes_an_s_unless_there_is_one() -> None:
    assert [counted(n, "shard") for n in (0, 1, 2, 5000)] == [
        "0 shards",
        "1 shard",
        "2 shards",
        "5,000 shards",
    ]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([1], "1"),
        (range(1, 8), "1, 2, 3, 4, 5, 6, 7"),  # leaving out one number saves nothing
        (range(1, 9), "1, 2, 3, 4, … 7, 8"),
    ],
)
def test_a_long_list_of_numbers_loses_its_middle(numbers: range, text: str) -> None:
    assert first_and_last(numbers, 6) == text


@pytest.mark.parametrize(
    ("num_lines", "shown"),
    [
        (0, []),
        (3, ["0", "1", "2"]),  # the line that counts one is no shorter than the one
        (4, ["0", "1", "and 2 more"]),
        (1000, ["0", "1", "and 998 more"]),
    ],
)
def test_lines_past_a_few_are_counted(num_lines: int, shown: list[str]) -> None:
    assert first_few([str(number) for number in range(num_lines)], 2) == shown
