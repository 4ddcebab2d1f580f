"""Speed of the replay beside tf.data's own shuffle, and of what is followed beside both.

The order of n elements is made by both in one run; the groups are lengths and buffers. The
replay is held to a fifteenth of TensorFlow's time, whose elements come in batches of 65,536. Single
elements that are followed are held to fractions of what replaying them takes.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

from shardctl.tfdata.shuffle_buffer import ShuffleReplay
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds

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


def _seconds(run: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("buffer", "count", "near", "least"),
    [(10_000, 300, False, 3), (1_000_000, 1, False, 5), (10_000_000, 256, True, 2)],
)
def test_what_is_followed_is_many_times_as_fast_as_a_replay(
    buffer: int, count: int, near: bool, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where examples of a billion stand, and what stands there: 256 in a row are a batch."""
    seeds = shuffle_kernel_seeds(SEED, None)
    replay = ShuffleReplay(num_elements=10**9, buffer_size=buffer, seeds=seeds)
    draw = np.random.default_rng(1)
    wanted = np.unique(draw.integers(10**8, 9 * 10**8, count))
    if near:
        wanted = 9 * 10**8 + np.arange(count)
    for ask in (ShuffleReplay.outputs_of, ShuffleReplay.inputs_at):
        followed = min(_seconds(ask, replay, wanted) for _ in range(2))
        found = ask(replay, wanted)
        with monkeypatch.context() as patch:
            patch.setattr(ShuffleReplay, "_follows", lambda _, first, *__: first < 0)
            replayed = _seconds(ask, replay, wanted)
            assert (ask(replay, wanted) == found).all()
        ratio = replayed / followed
        print(
            f"{ask.__name__} {count} with a buffer of {buffer:,}: "
            f"{replayed:.3f} s / {followed:.3f} s = {ratio:.0f}"
        )
        assert ratio >= least


def test_the_last_element_is_known_long_before_tensorflow_hands_it_out() -> None:
    import tensorflow as tf

    size, buffer = 1_281_167, 10_000
    dataset = tf.data.Dataset.range(size)
    dataset = dataset.shuffle(buffer, seed=SEED, reshuffle_each_iteration=False)
    _tensorflow(10, 10)
    start = time.perf_counter()
    (last,) = dataset.skip(size - 1).as_numpy_iterator()
    tensorflow = time.perf_counter() - start
    replay = ShuffleReplay(
        num_elements=size, buffer_size=buffer, seeds=shuffle_kernel_seeds(SEED, None)
    )
    followed = min(_seconds(replay.inputs_at, [size - 1]) for _ in range(3))
    assert replay.inputs_at([size - 1]).tolist() == [last]
    print(f"{tensorflow:.3f} s / {followed:.4f} s = {tensorflow / followed:.0f}")
    assert tensorflow / followed >= 15
