"""Quantities as people read them."""

import numpy as np
import pytest

from shardctl.base.text import counted
from shardctl.draw.quantities import (
    bytes_between,
    counts_between,
    first_and_last,
    first_few,
    human_bytes,
    in_ranges,
    numbered,
    percent_over,
    short_count,
    subject,
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


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [
        (5, 5, "5 B"),
        (5, 7, "5–7 B"),
        (1000, 2048, "1000 B–2.0 KiB"),
        (2048, 2049, "2.0 KiB"),
        (2048, 4096, "2.0–4.0 KiB"),
    ],
)
def test_a_range_of_sizes_has_its_unit_once(least: int, most: int, text: str) -> None:
    assert bytes_between(least, most) == text


def test_counts_are_grouped_and_numbers_of_hosts_are_not() -> None:
    assert [counts_between(1000, 1000), counts_between(0, 2000)] == ["1,000", "0–2,000"]
    assert [numbered(1000, 1000), numbered(0, 2000)] == ["1000", "0–2000"]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([4], "4"),
        ([4, 5, 6], "4–6"),
        ([1, 3, 4, 9], "1, 3–4, 9"),
        ([1, 3, 5, 7], "1, 3, 5, …"),
        ([1, 2, 4, 6, 7, 9, 11], "1–2, 4, 6–7, …"),
    ],
)
def test_numbers_are_named_in_ranges(numbers: list[int], text: str) -> None:
    assert in_ranges(np.array(numbers)) == text


def test_one_is_named_and_several_are_counted() -> None:
    assert subject("host", np.array([3]), "has", "have") == "host 3 has"
    assert subject("host", np.arange(2000), "has", "have") == "2,000 hosts (0–1999) have"
    assert percent_over(0) == "+0.0%"
