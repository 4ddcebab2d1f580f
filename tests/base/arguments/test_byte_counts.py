"""Numbers of bytes as people write them."""

from __future__ import annotations

import pytest

from shardctl.base.arguments import byte_count
from shardctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8GiB", 8 * 2**30),
        ("8Gi", 8 * 2**30),
        ("8G", 8 * 2**30),
        ("8 gib", 8 * 2**30),
        ("8GB", 8 * 10**9),
        ("500MB", 500_000_000),
        ("1.5KiB", 1536),
        (".5 TB", 5 * 10**11),
        ("1TiB", 2**40),
        ("2P", 2**51),
        ("4096", 4096),
        ("4_096 B", 4096),
        ("1,000kb", 1_000_000),
        ("0.3KB", 300),  # 0.3 * 1000 in floats is 299.99..
        (7, 7),
    ],
)
def test_a_size_is_so_many_bytes(text: object, number: int) -> None:
    assert byte_count(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GiB",
        "8 Gb its",
        "8GiBs",
        "-1",
        "0",
        "0.5",
        "1e9",
        "1e3GB",
        "8G8",
        "nan",
        "1..2",
        "9EiB",
        "9" * 200,
    ],
)
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="a number of bytes is needed, as 8GiB, 500MB or 4096"):
        byte_count(text)


@pytest.mark.parametrize("value", [0, -3, True, 1.5, None])
def test_a_number_is_a_whole_one_above_0(value: object) -> None:
    with pytest.raises(UsageError):
        byte_count(value)
