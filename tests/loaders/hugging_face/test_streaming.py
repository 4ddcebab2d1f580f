"""How hosts and workers share the shards of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.loaders.hugging_face import Streaming
from shardctl.loaders.hugging_face_eras import era_of
from shardctl.loaders.loader_sequence import LoaderConfig


def streaming(version: str, num_shards: int, **settings: Any) -> Streaming:
    """A stream of shards of 5 examples."""
    lengths = np.full(num_shards, 5)
    asked = LoaderConfig(lengths=lengths, version=version, streaming=True, **settings)
    return Streaming(asked, era_of(version))


@pytest.mark.parametrize(
    ("version", "num_shards", "seed", "counted"),
    [
        ("4.8.5", 24, 1, 24),
        ("5.0.0", 24, None, 24),
        ("5.0.0", 24, 1, 2),  # 10 runs, the shortest of 2 shards
        ("5.0.0", 12, 1, 1),
        ("5.0.0", 4, 1, 1),
        ("5.1.0", 24, 1, 24),
    ],
)
def test_shards_are_counted_as_the_library_counts_them(
    version: str, num_shards: int, seed: int | None, counted: int
) -> None:
    assert streaming(version, num_shards, seed=seed).num_shards == counted


@pytest.mark.parametrize("version", ["3.6.0", "4.8.5", "5.0.0", "5.2.0"])
@pytest.mark.parametrize("num_shards", [1, 3, 12, 40])
@pytest.mark.parametrize("hosts", [1, 2, 3, 4])
@pytest.mark.parametrize("workers", [0, 2, 5])
def test_hosts_and_workers_read_every_example_once(
    version: str, num_shards: int, hosts: int, workers: int
) -> None:
    read = []
    for host in range(hosts):
        found = streaming(
            version,
            num_shards,
            seed=1,
            buffer=7,
            shares=True,
            host=host,
            num_hosts=hosts,
            workers=workers,
        )
        orders = found.workers(2)
        assert [len(order) for order in orders] == found.sizes(2)
        assert len(orders) == max(1, workers)
        read += [index for order in orders for index in order.tolist()]
    assert sorted(read) == list(range(5 * num_shards))


def test_workers_without_a_shard_are_idle() -> None:
    assert streaming("5.2.0", 3, workers=5).num_idle_workers == 2
    assert streaming("5.0.0", 12, seed=1, workers=5).num_idle_workers == 4
    assert streaming("5.2.0", 12, seed=1, workers=5).num_idle_workers == 0
