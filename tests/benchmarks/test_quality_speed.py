"""Speed of measuring an order beside the entropy that mosaicml-streaming computes of one.

Both in one run, over 10 million examples in 1,024 shards. The entropy is restated here in its plain
form, since the package brings PyTorch along: mosaicml-streaming 0.13.0,
simulation/core/shuffle_quality.py, get_entropy (of the distances between neighbours), which
get_entropy_shuffle_quality adds up over examples and shards. It is handed the order; ours makes the
stretches that it measures. The score is held to a fifth of the time of one such entropy, and to a
tenth of that of making the order and computing both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shardctl.order.order import Order
from shardctl.order.sample import sample_epoch
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.metrics import far_metrics, near_metrics
from shardctl.verbs.quality.score import score_of
from tests.verbs.quality.quality_orders import order_of

NUM_EXAMPLES = 10_000_000
NUM_SHARDS = 1024
PIPELINES = {
    "files shuffled": ReadSettings(shuffle_seed=1),
    "buffer of 10,000": ReadSettings(shuffle_seed=1, buffer=10_000, buffer_seed=1),
    "buffer of 1,000,000": ReadSettings(shuffle_seed=1, buffer=1_000_000, buffer_seed=1),
    "uniform": ReadSettings(buffer=-2, buffer_seed=1),
}


def _entropy(ordering: np.ndarray) -> float:
    counts = np.bincount(np.abs(np.diff(ordering)))
    chances = counts[counts != 0] / (len(ordering) - 1)
    return float(-np.sum(chances * np.log2(chances)))


def _score(order: Order) -> float:
    sample = sample_epoch(order, window=256)
    assert not sample.complete
    return score_of([*near_metrics(sample, 256), *far_metrics(sample)]).value


def _order(settings: ReadSettings) -> Order:
    return order_of(NUM_EXAMPLES, NUM_SHARDS, settings)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_score(benchmark: Any, name: str) -> None:
    benchmark.group = name
    benchmark.pedantic(lambda: _score(_order(PIPELINES[name])), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_entropy(benchmark: Any, name: str) -> None:
    benchmark.group = name
    ids = _order(PIPELINES[name]).read(0, NUM_EXAMPLES)
    benchmark.pedantic(_entropy, (ids,), rounds=2)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_score_takes_a_fifth_of_an_entropy_and_a_tenth_of_all_of_it(name: str) -> None:
    settings = PIPELINES[name]
    offsets = np.array(_order(settings).dataset.splits[0].offsets[1:])
    ours, entropy, everything = [], [], []
    # In turns, so that a busy machine slows both; the best of each.
    for _ in range(2):
        ours += [_seconds(lambda: _score(_order(settings))) for _ in range(3)]
        start = time.perf_counter()
        ids = _order(settings).read(0, NUM_EXAMPLES)
        entropy.append(_seconds(lambda ids=ids: _entropy(ids)))  # type: ignore[misc]
        _entropy(np.searchsorted(offsets, ids, side="right"))
        everything.append(time.perf_counter() - start)
    one, full = min(entropy) / min(ours), min(everything) / min(ours)
    print(f"{name}: {min(ours):.3f} s; entropy {one:.1f} times, all of it {full:.1f} times that")
    assert one >= 5
    assert full >= 10


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
