"""The files of one split: which holds what, by hand."""

from __future__ import annotations

import numpy as np

from shardctl.core.dataset.dataset import Split
from shardctl.core.hosts.host_reads import SplitFiles


def test_files_without_examples_are_passed_over() -> None:
    files = SplitFiles(Split(name="train", shard_lengths=(0, 2, 0, 3)), base=10)
    shards = files.shards_of(np.arange(5))
    assert shards.tolist() == [1, 1, 3, 3, 3]
    assert files.num_files == 2
    assert files.numbers_of(shards).tolist() == [10, 10, 11, 11, 11]


def test_bytes_of_a_file_that_nobody_opens_do_not_count() -> None:
    split = Split(name="train", shard_lengths=(2, 0, 4), shard_bytes=(20, 999, 40), num_bytes=60)
    files = SplitFiles(split)
    first, last, stop = np.array([0]), np.array([2]), np.array([5])
    assert files.bytes_between(first, last, stop).tolist() == [20 + 30]
    assert files.stated_bytes(np.array([3, 6, 9])).tolist() == [30, 60, 90]


def test_a_size_that_is_missing_leaves_what_is_stated() -> None:
    split = Split(name="train", shard_lengths=(2, 0, 4), shard_bytes=(20, None, None))
    assert SplitFiles(split).sizes is None
    assert not SplitFiles(split).knows_bytes
    of_empty = Split(name="train", shard_lengths=(2, 0), shard_bytes=(20, None))
    assert SplitFiles(of_empty).knows_bytes


def test_bytes_are_whole_numbers_however_large_a_file_is() -> None:
    # A third of 3 * 10**17 + 3 bytes, which a float of 53 bits does not hold.
    split = Split(name="train", shard_lengths=(3,), shard_bytes=(3 * 10**17 + 3,))
    found = SplitFiles(split).bytes_of(np.array([0, 0]), np.array([1, 3]))
    assert found.tolist() == [10**17 + 1, 3 * 10**17 + 3]
