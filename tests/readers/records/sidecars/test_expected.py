"""A file beside what its sidecar says of it."""

from __future__ import annotations

import pytest

from shardctl.files.stores.store import StoredFile
from shardctl.readers.records.sidecars import ExpectedCount, disagreement


@pytest.mark.parametrize(
    ("num_examples", "num_bytes", "said"),
    [
        (3, 9, None),
        (3, None, None),
        (4, 9, "holds 3 examples, and index.json says 4"),
        (4, 8, "holds 3 examples, and index.json says 4"),
        (3, 8, "has 9 bytes, and index.json says 8"),
    ],
)
def test_counts_and_sizes_are_compared(
    num_examples: int, num_bytes: int | None, said: str | None
) -> None:
    expected = ExpectedCount(num_examples=num_examples, num_bytes=num_bytes, said_by="index.json")
    assert disagreement(StoredFile(path="a", num_bytes=9), 3, expected) == said


def test_one_is_an_example() -> None:
    expected = ExpectedCount(num_examples=2, said_by="index.json")
    said = disagreement(StoredFile(path="a", num_bytes=9), 1, expected)
    assert said == "holds 1 example, and index.json says 2"
