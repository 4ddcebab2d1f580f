"""What a rule is asked."""

from __future__ import annotations

import numpy as np

from shardctl.loaders.loader_sequence import LoaderConfig


def test_examples_are_those_of_all_shards() -> None:
    assert LoaderConfig(lengths=np.array([3, 0, 4]), version="1.0").num_examples == 7


def test_a_buffer_is_of_a_stream_unless_somebody_says_otherwise() -> None:
    lengths = np.array([3])
    assert not LoaderConfig(lengths=lengths, version="1.0").streams
    assert LoaderConfig(lengths=lengths, version="1.0", buffer=2).streams
    assert not LoaderConfig(lengths=lengths, version="1.0", buffer=2, streaming=False).streams
    assert LoaderConfig(lengths=lengths, version="1.0", streaming=True).streams


def test_a_shard_is_cut_where_a_part_of_it_is_read() -> None:
    lengths, shards = np.array([3, 2]), np.array([3, 4])
    assert LoaderConfig(lengths=lengths, version="1.0", shard_lengths=shards).cut_shards == 1
    assert LoaderConfig(lengths=lengths, version="1.0").cut_shards == 0
