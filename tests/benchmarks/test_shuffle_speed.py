"""Speed of the replay beside tf.data's own shuffle.

The order of n elements is made by both in one run; the groups are lengths and buffers. The
replay is held to a fifteenth of TensorFlow's time, whose elements come in batches of 65,536.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.core.shuffle.seeds import shuffle_kernel_seeds

SIZES = [(1_280_000, 10_000), (1_281_167, 1_281_167)]
if "SHARDCTL_LONG_BENCHMARKS" in os.environ:
    SIZES.append((20_000_000, 100_000))
SEED = 7
LEAST_RATIO = 15


def _replay(num_elements: int, buffer_size: int) -> int:
    seeds = shuffle_kernel_seeds(SEED, None)
    replay = ShuffleReplay(num_elements=num_elements, buffer_size=buffer_size, seeds=seeds)
    return sum(int(chunk[0]) for chunk in replay.chunks())


def _tensorflow(num_elements: int, buffer_size: int) -> int:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(num_elements).shuffle(buffer_size, seed=SEED)
    return sum(int(batch[0]) for batch in dataset.batch(1 << 16))


@pytest.mark.parametrize(("num_elements", "buffer_size"), SIZES)
def test_the_replay(benchmark: Any, num_elements: int, buffer_size: int) -> None:
    benchmark.group = f"{num_elements:,} elements, buffer {buffer_size:,}"
    benchmark.pedantic(_replay, (num_elements, buffer_size), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize(("num_elements", "buffer_size"), SIZES)
def test_tensorflow(benchmark: Any, num_elements: int, buffer_size: int) -> None:
    benchmark.group = f"{num_elements:,} elements, buffer {buffer_size:,}"
    _tensorflow(10, 10)
    benchmark.pedantic(_tensorflow, (num_elements, buffer_size), rounds=2)


@pytest.mark.parametrize(("num_elements", "buffer_size"), SIZES)
def test_the_replay_is_fifteen_times_as_fast(num_elements: int, buffer_size: int) -> None:
    _tensorflow(10, 10)
    # In turns, so that a busy machine slows both; the best of each.
    replay, tensorflow = [], []
    for _ in range(2):
        tensorflow.append(_seconds(_tensorflow, num_elements, buffer_size))
        replay += [_seconds(_replay, num_elements, buffer_size) for _ in range(3)]
    ratio = min(tensorflow) / min(replay)
    print(f"{min(tensorflow):.3f} s / {min(replay):.3f} s = {ratio:.1f}")
    assert ratio >= LEAST_RATIO


def _seconds(run: Any, num_elements: int, buffer_size: int) -> float:
    start = time.perf_counter()
    run(num_elements, buffer_size)
    return time.perf_counter() - start
