"""How well is each part of an epoch mixed near by?"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.planning.quality.metrics import near_metrics
from shardctl.planning.quality.sample import OrderSample
from shardctl.planning.quality.score import Metric, Score, score_of

_NUM_PARTS = 10
_TAIL = 0.01


@dataclass(frozen=True, kw_only=True)
class Part:
    """How well a part of the epoch, positions [start, stop), is mixed near by.

    `mean_storage` is where in storage its examples lie on average, from 0 to 1; uniform 0.5.
    """

    start: int
    stop: int
    score: Score
    metrics: tuple[Metric, ...]
    mean_storage: float


def by_position(
    sample: OrderSample, window: int, num_classes: int | None
) -> tuple[tuple[Part, ...], Part | None]:
    """Return the quality of equal parts of an epoch, ten at most, and of its last hundredth.

    The end is None where it is about as long as a part, which then shows the same.
    """
    count = max(1, min(_NUM_PARTS, sample.num_positions // window, len(sample.ranks[0])))
    if not sample.complete:
        count = min(_NUM_PARTS, len(sample.starts) // 2)
    parts = tuple(
        _part(sample, i / count, (i + 1) / count, window, num_classes) for i in range(count)
    )
    share = max(_TAIL, window / sample.num_positions)
    if not sample.complete:
        share = max(share, 2 / len(sample.starts))
    if share > 1 / (2 * count):
        return parts, None
    return parts, _part(sample, 1 - share, 1.0, window, num_classes)


def _part(
    sample: OrderSample, first: float, last: float, window: int, num_classes: int | None
) -> Part:
    piece = sample.part(first, last, window)
    start = int(piece.starts[0]) if piece.complete else round(first * sample.num_positions)
    metrics = near_metrics(piece, window, num_classes)
    return Part(
        start=start,
        stop=start + piece.length if piece.complete else round(last * sample.num_positions),
        score=score_of(metrics),
        metrics=tuple(metrics),
        mean_storage=(float(piece.ranks.mean()) + 0.5) / sample.num_ranks,
    )
