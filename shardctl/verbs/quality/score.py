"""The score of an order: metrics beside what a uniform permutation shows, made one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from shardctl.order.order import Order

Fault = Literal["above", "below", "both", "times"]
Scale = Literal["near", "far", "shown"]

# Mean and variance of max(0, z) and of |z| for a standard normal z.
_HALF = (1 / math.sqrt(2 * math.pi), 0.5 - 1 / (2 * math.pi))
_FULL = (math.sqrt(2 / math.pi), 1 - 2 / math.pi)


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measure of an order.

    value: as measured. expected, spread: under a uniform permutation measured the same way.
    sampling_error: one standard error of the value for that of the whole order, None where all
        of it is measured.
    fault: on which side of `expected` an order is worse; "times" is above, by the ratio of the two.
    reach: how far from `expected` the score is 0, or a half where it goes by the ratio.
    scale: whether it counts as mixing near by, far apart, or is only shown.

    >>> Metric(name="x", value=0.2, expected=0.1, spread=0.01, fault="above", reach=0.4).score
    0.75
    """

    name: str
    value: float
    expected: float
    spread: float
    fault: Fault
    reach: float
    scale: Scale = "near"
    sampling_error: float | None = None

    @property
    def score(self) -> float:
        """From 0, the order of storage, to 1, what a uniform permutation is expected to show."""
        off = self.value - self.expected
        off = abs(off) if self.fault == "both" else -off if self.fault == "below" else off
        parts = max(0.0, off) / self.reach
        return 1 / (1 + parts) if self.fault == "times" else 1 - min(1.0, parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How close an order is to a uniform permutation, from 0 to 1.

    near: the geometric mean of the metrics of mixing near by, so that one that is bad makes it bad:
        a buffer that separates neighbours but draws each batch from a few places mixes badly.
    far: the mean of the metrics of mixing far apart, None where there are none.
    value: near * (1 + far) / 2. Half is lost where the epoch follows storage; whole blocks that are
        shuffled gain nothing by it, as their batches are as bad as sorted ones.
    expected, spread: of the value under a uniform permutation measured the same way. An order that
        scores `expected` cannot be told from a uniform one.
    sampling_error: one standard error, None where the order is measured whole.
    """

    value: float
    near: float
    far: float | None
    expected: float
    spread: float
    sampling_error: float | None


def score_of(metrics: Sequence[Metric]) -> Score:
    """Return the score that metrics make.

    The expectation and spread under a uniform permutation take the metrics as normal, those near by
    as independent and those far apart as one; the sampling error is propagated from each.
    """
    near = [metric for metric in metrics if metric.scale == "near"]
    far = [metric for metric in metrics if metric.scale == "far"]
    value, mean_near, mean_far = _combined(near, far)
    lost, variance, together = 0.0, 0.0, 0.0
    for metric in (*near, *far):
        mean, square = _FULL if metric.fault == "both" else _HALF
        weight = 1 / len(near) if metric.scale == "near" else 1 / (2 * len(far))
        deviation = weight * metric.spread / metric.reach
        lost += mean * deviation
        if metric.scale == "near":
            variance += square * deviation**2
        else:
            together += math.sqrt(square) * deviation
    errors = [metric.sampling_error for metric in (*near, *far)]
    return Score(
        value=value,
        near=mean_near,
        far=mean_far,
        expected=max(0.0, 1 - lost),
        spread=math.hypot(math.sqrt(variance), together),
        sampling_error=None if None in errors else _propagated(near, far),
    )


def _combined(near: Sequence[Metric], far: Sequence[Metric]) -> tuple[float, float, float | None]:
    mean_near = math.prod(metric.score for metric in near) ** (1 / len(near))
    if not far:
        return mean_near, mean_near, None
    mean_far = sum(metric.score for metric in far) / len(far)
    return mean_near * (1 + mean_far) / 2, mean_near, mean_far


def _propagated(near: Sequence[Metric], far: Sequence[Metric]) -> float:
    total = 0.0
    for index, metric in enumerate((*near, *far)):
        sides = []
        for sign in (-1, 1):
            moved = [*near, *far]
            moved[index] = replace(
                metric, value=metric.value + sign * (metric.sampling_error or 0.0)
            )
            sides.append(_combined(moved[: len(near)], moved[len(near) :])[0])
        total += ((sides[1] - sides[0]) / 2) ** 2
    return math.sqrt(total)


# What the score of an order is worth, in words.
#
# Two verdicts are facts and need no score: an order that nothing shuffles, and one that comes out
# of a buffer as large as its epoch, which is a uniform permutation however it looks. The others
# are thresholds, put where measurements put them:
#
# FAIR, GOOD: a dataset read file after file through a buffer of a quarter of it scores 0.44 to
# 0.54,     through a buffer of half of it 0.76 to 0.81, for 2,000 to 1,281,167 examples in 1 to
# 1,024 files     and batches of 32 to 1,024. An example then moves by 16% and 26% of the dataset
# on the average,     and by 33% in a uniform permutation. Practice on ImageNet (1,024 files, cycle
# 16, batches of     256): files shuffled alone score 0.07 (weak), with a buffer of 1,000 0.45
# (weak), of 10,000 0.59     (fair), of 60,000 0.81 (good); a buffer of 10,000 without a file
# shuffle 0.07 (weak). SPREADS: of 298,000 uniform permutations (5 to 60,000 examples in 1 to 64
# files, batches of 2 to     256) 99.9% score above the expected score less 2.4 to 5.0 spreads,
# depending on the size.
#
# One score equal to those of uniform permutations is no proof: a buffer of two thirds of 1,500
# examples scores 0.962 in the mean of 60 seeds, where these score 0.984, give or take 0.008. So
# such an order is close to uniform, and "as good as uniform" is said of the second fact alone.
#
# Of few examples a uniform permutation may score as low as an order that is fair. Where it may, an
# order that scores so can be either, and the verdict is that it cannot be told.

Verdict = Literal[
    "no shuffle", "weak", "fair", "good", "close to uniform", "as good as uniform", "cannot tell"
]

FAIR = 0.5
GOOD = 0.8
SPREADS = 5.0

# Verdicts of orders that may look like a uniform permutation.
MIXED: frozenset[Verdict] = frozenset(
    {"good", "close to uniform", "as good as uniform", "cannot tell"}
)

_MEANINGS: dict[Verdict, str] = {
    "weak": "mixed less than by a buffer of a quarter of the dataset",
    "fair": "mixed as by a buffer of a quarter to half of the dataset",
    "good": "mixed as by a buffer of half of the dataset or more",
    "close to uniform": "the score is within 5 spreads of a uniform one's; it is no proof of one",
    "as good as uniform": "it is a uniform permutation, whatever its score is",
    "cannot tell": "so few examples score as much by chance, whatever shuffles them",
}


def verdict_of(score: Score, order: Order) -> Verdict:
    """Return what the score of an order is worth.

    An order whose score has a sampling error is judged by the score as it is measured.
    """
    if not order.shuffles:
        return "no shuffle"
    if order.is_uniform:
        return "as good as uniform"
    floor = lowest_uniform(score)
    if score.value >= floor:
        return "close to uniform" if floor >= GOOD else "cannot tell"
    return "good" if score.value >= GOOD else "fair" if score.value >= FAIR else "weak"


def lowest_uniform(score: Score) -> float:
    """Return the score that 99.9% of uniform permutations reach, measured the same way."""
    return max(0.0, score.expected - SPREADS * score.spread)


def meaning(verdict: Verdict, order: Order) -> str:
    """Return what a verdict says of an order, as a clause."""
    return _MEANINGS.get(verdict) or f"nothing shuffles; {order.unshuffled}"


def even_from_afar(verdict: Verdict) -> str:
    """Return what is said of a picture that looks like a uniform permutation of an order."""
    said = "not shuffled" if verdict == "no shuffle" else verdict
    return (
        f"It looks even from afar, but near by this order is {said}: that is finer than what is "
        "drawn, and in the score."
    )
