"""What stands out among shards, in words: expected values by hand."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Split
from shardctl.verbs.layout.picture import Shards, told


def shards(lengths: tuple[int, ...], sizes: tuple[int | None, ...] | None = None) -> Shards:
    return Shards(Split(name="train", shard_lengths=lengths, shard_bytes=sizes))


def test_the_largest_the_empty_and_the_missing_are_told() -> None:
    found = shards((40, 0, 40, 10, 0), (4096, None, None, 2048, 0))
    assert list(told(found)) == [
        "2 shards (0, 2) have the most: 40 examples (+122.2% over the mean)",  # of 18
        "shard 0 has the largest file: 4.0 KiB (+100.0% over the mean)",  # of 4, 2 and 0 KiB
        "2 shards (1, 4) are empty",
        "shard 2 is missing",
    ]
    assert found.words(0, 0, of_files=False) == ["most"]
    assert found.words(1, 1, of_files=False) == ["empty"]
    assert found.words(0, 4, of_files=False) == ["most", "2 empty"]
    assert found.words(1, 2, of_files=True) == ["1 missing"]
    assert found.sizes_between(1, 2) is None
    assert found.sizes_between(0, 4) == (0, 4096)


def test_shards_that_differ_by_one_example_are_alike() -> None:
    assert list(told(shards((3, 4, 3)))) == []
    assert list(told(shards((3, 4, 5)))) == [
        "shard 2 has the most: 5 examples (+25.0% over the mean)"
    ]


@pytest.mark.parametrize("lengths", [(0, 0), (7,)])
def test_nothing_is_most_where_all_are_the_same(lengths: tuple[int, ...]) -> None:
    found = shards(lengths)
    assert found.largest is None
    assert found.largest_file is None
    assert found.sizes_between(0, 0) is None


def test_files_whose_sizes_are_the_same_have_no_largest() -> None:
    assert list(told(shards((5, 5), (100, 100)))) == []
