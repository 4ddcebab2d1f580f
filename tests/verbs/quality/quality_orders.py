"""Orders of known quality, and measures of them counted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.sample import OrderSample, sample_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.verbs.quality.answer import Quality, quality
from shardctl.verbs.quality.metrics import Score, far_metrics, near_metrics, score_of


def even_dataset(num_examples: int, num_shards: int) -> Dataset:
    train = Split.even(
        name="train", num_examples=num_examples, num_shards=num_shards, num_bytes=7 * num_examples
    )
    return Dataset(name="d", splits=(train,))


def order_of(num_examples: int, num_shards: int, settings: ReadSettings) -> Order:
    dataset = even_dataset(num_examples, num_shards)
    train = dataset.splits[0]
    return ReaderOrder(dataset, [SplitRange(split=train, start=0, stop=num_examples)], settings)


def in_equal_shards(ranks: Int64s, num_shards: int) -> OrderSample:
    return sample_of(ranks, ranks * num_shards // len(ranks))


def score(sample: OrderSample, window: int) -> Score:
    return score_of([*near_metrics(sample, window), *far_metrics(sample)])


def buffered(inputs: Int64s, size: int, generator: np.random.Generator) -> Int64s:
    """Return what a shuffle buffer makes of `inputs`, played with a list."""
    waiting: list[int] = inputs.tolist()
    buffer: list[int] = []
    out: list[int] = []
    waiting.reverse()
    while waiting or buffer:
        while waiting and len(buffer) < size:
            buffer.append(waiting.pop())
        out.append(buffer.pop(int(generator.integers(len(buffer)))))
    return np.array(out)


def counted(ranks: Sequence[int], shards: Sequence[int], window: int) -> dict[str, float]:
    """Return the measures of a small order, counted one by one."""
    n = len(ranks)
    batches = [ranks[i : i + window] for i in range(0, n - window + 1, window)]
    of_shards = [shards[i : i + window] for i in range(0, n - window + 1, window)]

    def cell(rank: int) -> int:
        return next(c for c in range(window) if rank * window < (c + 1) * n)

    squares = sum((position - rank) ** 2 for position, rank in enumerate(ranks))
    return {
        "same_shard_neighbours": sum(a == b for a, b in pairwise(shards)) / (n - 1),
        "neighbour_distance": sum(abs(a - b) for a, b in pairwise(ranks)) / (n - 1) / n,
        "batch_coverage": sum(len({cell(r) for r in batch}) for batch in batches)
        / len(batches)
        / window,
        "displacement": sum(abs(p - rank) for p, rank in enumerate(ranks)) / n / n,
        "rank_correlation": 1 - 6 * squares / (n * (n * n - 1)),
        "shards_in_batch": sum(len(set(batch)) for batch in of_shards) / len(of_shards),
    }


def quality_alone(dataset: Dataset, settings: ReadSettings, spec: str = "train") -> Quality:
    """Return the quality without what other settings would make of it."""
    return quality(dataset, spec, settings, what_if=False)


def order_of_spec(dataset: Dataset, settings: ReadSettings, spec: str = "train") -> Order:
    return ReaderOrder(dataset, resolve_subsplit(spec, dataset).ranges, settings)
