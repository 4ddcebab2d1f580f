"""How fast an interleave's order is made: against tf.data over the same order, and a disk.

Run with `pytest tests/benchmarks/test_interleave_speed.py`. Rows of one group are comparable, and
the ratio of two rows of one run is the figure to quote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from shardctl.tfdata.interleave import Interleave

IMAGENET = np.array([1251 + (shard % 8 == 0) for shard in range(1024)])
# 30 times as many examples in as many shards: 38 million.
LARGE = IMAGENET * 30
MANY_SHARDS = np.random.default_rng(0).integers(5_000, 15_000, 1_000_000)
CYCLE, BLOCK = 16, 16


def drain(lengths: npt.NDArray[np.int64], block: int = BLOCK, limit: int = 30_000_000) -> int:
    """Make the schedule and read its ids chunk by chunk; return their number."""
    order = Interleave(lengths, cycle_length=CYCLE, block_length=block)
    stop = min(limit, order.num_examples)
    firsts = np.cumsum(lengths) - lengths
    pieces = range(0, stop, 1 << 20)
    return sum(len(order.read(at, min(at + (1 << 20), stop), firsts)) for at in pieces)


def drain_tensorflow(tf: Any, lengths: npt.NDArray[np.int64]) -> int:
    """Read the same ids from tf.data with ranges in place of files, in its fastest form."""
    starts = np.cumsum(lengths) - lengths
    dataset = tf.data.Dataset.from_tensor_slices((starts, lengths)).interleave(
        lambda start, count: tf.data.Dataset.range(start, start + count),
        cycle_length=CYCLE,
        block_length=BLOCK,
    )
    return sum(len(ids) for ids in dataset.batch(1 << 16).as_numpy_iterator())


@pytest.mark.benchmark(group="imagenet, 1.28 million ids")
def test_imagenet_in_order(benchmark: Any) -> None:
    assert benchmark(drain, IMAGENET) == IMAGENET.sum()


@pytest.mark.benchmark(group="imagenet, 1.28 million ids")
def test_imagenet_in_order_by_tensorflow(benchmark: Any) -> None:
    tf = pytest.importorskip("tensorflow")
    assert benchmark.pedantic(drain_tensorflow, (tf, IMAGENET), rounds=3) == IMAGENET.sum()


@pytest.mark.benchmark(group="30 million ids")
@pytest.mark.parametrize("block", [1, BLOCK])
def test_large_shards_in_order(benchmark: Any, block: int) -> None:
    assert benchmark.pedantic(drain, (LARGE, block), rounds=5) == 30_000_000


@pytest.mark.benchmark(group="30 million ids")
def test_ids_saved_by_numpy(benchmark: Any, tmp_path: Path) -> None:
    ids = np.arange(30_000_000)
    benchmark.pedantic(np.save, (tmp_path / "ids.npy", ids), rounds=3)


@pytest.mark.benchmark(group="a million shards, 10 billion examples")
def test_schedule_of_a_million_shards(benchmark: Any) -> None:
    def build() -> Interleave:
        return Interleave(MANY_SHARDS, cycle_length=CYCLE, block_length=BLOCK)

    assert benchmark.pedantic(build, rounds=3).num_shards == 1_000_000


@pytest.mark.benchmark(group="a million shards, 10 billion examples")
def test_a_million_random_positions_located(benchmark: Any) -> None:
    order = Interleave(MANY_SHARDS, cycle_length=CYCLE, block_length=BLOCK)
    positions = np.random.default_rng(1).integers(0, order.num_examples, 1_000_000)
    shards, _ = benchmark.pedantic(order.locate, (positions,), rounds=3)
    assert len(shards) == 1_000_000


@pytest.mark.benchmark(group="a million shards, 10 billion examples")
def test_thirty_million_ids_from_a_million_shards(benchmark: Any) -> None:
    assert benchmark.pedantic(drain, (MANY_SHARDS,), rounds=3) == 30_000_000
