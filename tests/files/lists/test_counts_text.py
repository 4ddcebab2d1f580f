"""Lists of counts as texts: which they are, and how they are set apart."""

from __future__ import annotations

import pytest

from shardctl.files.record_columns import CountsText, without_blanks


@pytest.mark.parametrize("text", ["", ",", "1,", ",1", "1,,2", "01", "1 2", "-1", "1" * 19, "1\n"])
def test_anything_but_counts_is_none(text: str) -> None:
    assert CountsText.of(text.encode()) is None


@pytest.mark.parametrize("size", [1, 2, 40_000])
def test_counts_are_packed_as_they_are(size: int) -> None:
    numbers = [*range(size - 1), 10**18 - 1]
    counts = CountsText.of_ints(numbers)
    assert counts is not None
    assert (len(counts), counts.ints(), list(counts.packed())) == (size, numbers, numbers)
    twice = CountsText.joined((counts, CountsText(b""), counts))
    assert twice.packed() == (*numbers, *numbers)


@pytest.mark.parametrize("values", [[True], [-1], [10**18], [1.0], ["1"], [None]])
def test_other_values_are_no_counts(values: list[object]) -> None:
    assert CountsText.of_ints(values) is None


@pytest.mark.parametrize(
    ("body", "items"),
    [
        (b"1, 2,3,\n  4,\n5", b"1,2,3,4,5"),
        (b" 1 ", b"1"),
        (b"1 ,2", None),
        (b"1 2", None),
        (b",".join(b" " * k + b"1" for k in range(12)), None),  # each in a way of its own
    ],
)
def test_blanks_behind_commas_go(body: bytes, items: bytes | None) -> None:
    assert without_blanks(body) == items
