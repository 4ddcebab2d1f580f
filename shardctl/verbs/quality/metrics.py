"""Measures of an order, each beside what a uniform permutation shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.order.order import Order
from shardctl.order.sample import Floats, OrderSample


def near_metrics(sample: OrderSample, window: int) -> list[Metric]:
    """Return the metrics of local mixing: adjacent examples, and batches.

    A metric that every order has alike is left out: shards of one example, or a single shard,
    beside which others may be too small to count in a float.
    """
    found = []
    if len(sample.shard_sizes) > 1 and int(sample.shard_sizes.max()) > 1:
        neighbours = same_shard_neighbours(sample)
        found += [neighbours] if neighbours.reach > 0 else []
    found.append(neighbour_distance(sample))
    if window <= sample.length:
        found.append(batch_coverage(sample, window))
    return found


def far_metrics(sample: OrderSample) -> list[Metric]:
    """Return the metrics of global mixing: how the epoch follows storage order."""
    return [displacement(sample), rank_correlation(sample)]


def same_shard_neighbours(sample: OrderSample) -> Metric:
    """Return the part of neighbours in the order that come from one shard.

    n less the number of runs, over n - 1 (Wald and Wolfowitz, "On a test whether two samples are
    from the same population", 1940; Mood 1940 for several kinds). Uniform: the sum over shards of
    n_s (n_s - 1) / (n (n - 1)). Fewer is not a fault.
    """
    same = sample.shards[:, 1:] == sample.shards[:, :-1]
    # Pairs of neighbours: [k, length - 1] for k stretches.
    uniform = PairKernel.of_groups(sample.shard_sizes).moments(*_neighbours(sample))
    return _metric(
        "same_shard_neighbours", sample, same.mean(axis=1), uniform, "above", 1 - uniform.expected
    )


def neighbour_distance(sample: OrderSample) -> Metric:
    """Return how far apart in storage neighbours in the order lie, as a part of the dataset.

    The rank version of von Neumann's ratio ("Distribution of the ratio of the mean square
    successive difference to the variance", 1941; Bartels 1982), with |difference| for its square.
    Uniform: (n + 1) / (3 n).
    """
    # Ranks are positions in storage, so their difference is a distance there.
    distances = np.abs(np.diff(sample.ranks, axis=1)).mean(axis=1) / sample.num_ranks
    uniform = PairKernel.of_distances(sample.num_ranks).moments(
        *_neighbours(sample), sample.num_ranks
    )
    return _metric("neighbour_distance", sample, distances, uniform, "both", uniform.expected)


def batch_coverage(sample: OrderSample, window: int) -> Metric:
    """Return the part of the dataset that a batch is drawn from.

    Storage is cut into as many equal parts as the batch has examples; the value is how many of them
    the batch touches, over their number. Uniform: hypergeometric occupancy, about 1 - 1/e. More is
    no fault.
    """
    cells, sizes = _equal_parts(sample, window)
    touched = _touched(cells, window)
    # The mean over windows has the expectation of one window, and a spread that falls with their
    # number.
    uniform = occupancy_moments(sizes, window, touched.size)
    part = UniformMoments(expected=uniform.expected / window, spread=uniform.spread / window)
    values = touched.mean(axis=1) / window
    return _metric("batch_coverage", sample, values, part, "below", part.expected)


def shards_in_batch(sample: OrderSample, window: int) -> Metric:
    """Return from how many shards the examples of a batch come.

    Uniform: the sum over shards of 1 - C(n - n_s, b) / C(n, b). More is not a fault.
    """
    counts = _touched(sample.shards, window)
    uniform = occupancy_moments(sample.shard_sizes, window, counts.size)
    return _metric(
        "shards_in_batch", sample, counts.mean(axis=1), uniform, "below", uniform.expected, "shown"
    )


def displacement(sample: OrderSample) -> Metric:
    """Return the mean distance between position and place in storage, as a part of the dataset.

    Spearman's footrule over n**2 ("'Footrule' for measuring correlation", 1906; Diaconis and Graham
    1977). Uniform: 1/3; a reversed order has 1/2, which is as far from it as 1/6 is.
    """
    uniform = displacement_moments(sample.num_positions, sample.num_measured, sample.num_ranks)
    values = np.abs(sample.offsets).mean(axis=1)
    return _metric("displacement", sample, values, uniform, "both", uniform.expected, "far")


def rank_correlation(sample: OrderSample) -> Metric:
    """Return Spearman's rho between position and place in storage: 1 sorted, -1 reversed.

    1 - 6 sum d**2 / (n (n**2 - 1)) ("The proof and measurement of association between two things",
    1904). Uniform: 0.
    """
    n = sample.num_positions
    # n * n / (n * n - 1): offsets are over n, and Spearman's formula divides by n (n**2 - 1).
    values = 1 - 6 * (sample.offsets**2).mean(axis=1) * (n * n / (n * n - 1))
    uniform = rank_correlation_moments(n, sample.num_measured)
    return _metric("rank_correlation", sample, values, uniform, "both", 1.0, "far")


def _metric(
    name: str,
    sample: OrderSample,
    values: Floats,
    uniform: UniformMoments,
    fault: Fault,
    reach: float,
    scale: Scale = "near",
) -> Metric:
    error: float | None = None
    if not sample.complete:  # one stretch a stratum: from the differences of successive ones
        # Wolter, "Introduction to Variance Estimation", 2007, section 8.2, less what is measured.
        # One stretch only: nothing tells how much another would differ.
        error, part = math.inf, min(1.0, sample.num_measured / sample.num_positions)
        if len(values) > 1:
            variance = float((np.diff(values) ** 2).mean()) / 2 / len(values)
            # Finite population: what is measured has no error.
            error = math.sqrt(variance * (1 - part))
    return Metric(
        name=name,
        value=float(values.mean()),
        expected=uniform.expected,
        spread=uniform.spread,
        fault=fault,
        reach=reach,
        scale=scale,
        sampling_error=error,
    )


def _equal_parts(sample: OrderSample, count: int) -> tuple[Int64s, Int64s]:
    """Return which of equal parts each position holds (int64[k, length]), and their sizes."""
    num_ranks = sample.num_ranks
    if num_ranks * count < 1 << 63:  # else rank * count would overflow an int64
        # Part c begins at the first rank for which rank * count // num_ranks is c.
        # ceil(c * num_ranks / count), so that ranks [edges[c], edges[c + 1]) are part c.
        edges = -(-np.arange(count + 1) * num_ranks // count)
        return sample.ranks * count // num_ranks, np.diff(edges)
    size = num_ranks // count  # the last part takes the rest, fewer than `count`
    sizes = np.full(count, size)
    sizes[-1] += num_ranks - size * count
    # The last part takes what division leaves, so a part number is cut at count - 1.
    return np.minimum(sample.ranks // size, count - 1), sizes


def _neighbours(sample: OrderSample) -> tuple[int, int]:
    """Return (pairs of neighbours measured, pairs of those that share an example)."""
    stretches = len(sample.ranks)
    return stretches * (sample.length - 1), stretches * max(0, sample.length - 2)


def _touched(cells: Int64s, window: int) -> Int64s:
    """Return how many cells each window touches, int64[k, windows of a stretch]."""
    # Sorted, so that a new cell begins wherever neighbours differ; a set a window would be slow.
    # shape [k, windows, window]; the number of cells is one more than the number of changes.
    # [k, length] -> [k, whole windows, window]; the rest of a stretch is left out.
    count = cells.shape[1] // window
    windows = cells[:, : count * window].reshape(len(cells), count, window)
    ordered = np.sort(windows, axis=-1)
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1)
    return np.asarray(changes + 1, np.int64)


# What to expect of measures of an order when the order is a uniform permutation.
#
# `UniformMoments` are the expectation and the spread (one standard deviation) of a mean over
# positions of a permutation drawn uniformly. They are exact where all positions are measured.

_MAX_FACTORS = 4096  # factors of a product taken one by one; beyond, at as many midpoints
_MAX_SIZES = 32  # distinct cell sizes kept apart in a variance


@dataclass(frozen=True, kw_only=True, slots=True)
class UniformMoments:
    """Expectation and standard deviation under a uniform permutation."""

    expected: float
    spread: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairKernel:
    """Sums over all ordered pairs (x, y), x != y, of n examples of a symmetric g(x, y).

    total: of g(x, y); squares: of g(x, y)**2; rows: over x, of (sum over y of g(x, y))**2.
    """

    n: int
    total: int
    squares: int
    rows: int

    def moments(self, num_pairs: int, num_touching: int, unit: int = 1) -> UniformMoments:
        """Return the moments of the mean of g / unit over pairs of positions.

        `num_touching` counts the pairs of pairs that share a position. The variance of a sum of
        exchangeable terms has three parts: a pair with itself, with one that shares a position,
        and with one that shares none (the method of Wald and Wolfowitz, "An exact test for
        randomness in the non-parametric case based on serial correlation", 1943).

        >>> uniform = PairKernel.of_distances(3).moments(2, 1)  # 0 1 2 and its five rearrangements
        >>> round(uniform.expected, 6), round(uniform.spread, 6)
        (1.333333, 0.235702)
        """
        # Exact fractions: the variance is a small difference of large terms, of which floats would
        # leave nothing for a large n.
        n, mean = self.n, Fraction(self.total, self.n * (self.n - 1))
        # Variance of one pair's value.
        own = Fraction(self.squares, n * (n - 1)) - mean**2
        variance = num_pairs * own
        # Sum of g(x, y) g(x, z) over different x, y, z: the rows squared, less the pairs with
        # themselves.
        sharing = self.rows - self.squares
        if n > 2:
            touching = Fraction(sharing, n * (n - 1) * (n - 2)) - mean**2
            variance += 2 * num_touching * touching
        if n > 3:
            # Sum over four different examples: everything, less pairs that share both (2 ways) or
            # one (4 ways).
            apart = self.total**2 - 2 * self.squares - 4 * sharing
            disjoint = Fraction(apart, n * (n - 1) * (n - 2) * (n - 3)) - mean**2
            # Ordered pairs of pairs that share no position.
            variance += (num_pairs * (num_pairs - 1) - 2 * num_touching) * disjoint
        return UniformMoments(
            expected=float(mean / unit),
            spread=math.sqrt(max(0.0, float(variance / (num_pairs * unit) ** 2))),
        )

    @classmethod
    def of_groups(cls, sizes: Int64s) -> PairKernel:
        """Return the kernel that is 1 for two examples of one group; `sizes` is int64[groups].

        The number of neighbours of one group is n less the number of runs (Mood, "The
        distribution theory of runs", 1940); over all pairs it is Simpson's index of concentration
        ("Measurement of diversity", 1949).
        """
        # Groups of one size are counted together: a dataset has many shards and few sizes.
        distinct, counts = np.unique(sizes, return_counts=True)
        pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))
        ones = sum(count * size * (size - 1) for size, count in pairs)
        rows = sum(count * size * (size - 1) ** 2 for size, count in pairs)
        return cls(n=int(sizes.sum()), total=ones, squares=ones, rows=rows)

    @classmethod
    def of_distances(cls, n: int) -> PairKernel:
        """Return the kernel |x - y| of n places in storage."""
        # The sum over y of |x - y|, x from 1, is x**2 - (n + 1) x + n (n + 1) / 2; its square by
        # the sums of powers. Four times each, to stay with whole numbers.
        # Sums over x = 1..n: of x (one), x**2 (two) and x**4 (four); that of x**3 is one**2.
        one = n * (n + 1) // 2
        two = n * (n + 1) * (2 * n + 1) // 6
        four = n * (n + 1) * (2 * n + 1) * (3 * n * n + 3 * n - 1) // 30
        a, c = n + 1, n * (n + 1) // 2
        rows = four - 2 * a * one**2 + (a * a + 2 * c) * two - 2 * a * c * one + n * c * c
        return cls(n=n, total=n * (n * n - 1) // 3, squares=n * n * (n * n - 1) // 6, rows=rows)


def displacement_moments(n: int, num_measured: int, num_ranks: int) -> UniformMoments:
    """Return the moments of the mean of |position - place in storage| / n.

    Exact for all of n positions: Spearman's footrule, mean (n**2 - 1) / 3 and variance
    (n + 1)(2 n**2 + 7) / 45 of the sum (Diaconis and Graham, "Spearman's footrule as a measure of
    disarray", 1977). Of a sample the variance is that of Hoeffding ("A combinatorial central limit
    theorem", 1951): 1/20 a position for what the places differ, less 1/180 for what is fixed by all
    places being taken.

    >>> uniform = displacement_moments(3, 3, 3)
    >>> round(uniform.expected * 9, 6), round((uniform.spread * 9) ** 2, 6)  # 0 2 2 4 4 4
    (2.666667, 2.222222)
    """
    # All positions measured and all ranks present: the exact formula.
    if n == num_measured == num_ranks:
        variance = (n + 1) * (2 * n * n + 7) / 45
        return UniformMoments(expected=(n * n - 1) / (3 * n * n), spread=math.sqrt(variance) / n**2)
    return UniformMoments(expected=1 / 3, spread=math.sqrt(1 / (20 * num_measured) - 1 / (180 * n)))


def rank_correlation_moments(n: int, num_measured: int) -> UniformMoments:
    """Return the moments of Spearman's rho of position and place in storage.

    Of all positions the variance is 1 / (n - 1) (Kendall and Gibbons, "Rank Correlation Methods",
    1990). Of a sample it is 6/5 a position less 1/5 for all places being taken, as above.
    """
    if num_measured >= n:
        return UniformMoments(expected=0.0, spread=1 / math.sqrt(max(1, n - 1)))
    return UniformMoments(expected=0.0, spread=math.sqrt(6 / (5 * num_measured) - 1 / (5 * n)))


def occupancy_moments(sizes: Int64s, num_drawn: int, num_windows: int) -> UniformMoments:
    """Return the moments of how many cells windows of `num_drawn` examples touch on average.

    A cell of size a of n is missed with probability C(n - a, b) / C(n, b), two cells as one of both
    sizes (hypergeometric occupancy: Johnson and Kotz, "Urn Models and Their Application", 1977,
    chapter 3). Windows count as independent. `sizes` is int64[cells]; where more than 32 sizes
    differ, cells of like size share their mean in the variance.

    >>> uniform = occupancy_moments(np.array([2, 2]), 2, 1)  # 4 of 6 pairs touch both
    >>> round(uniform.expected, 6), round(uniform.spread, 6)
    (1.666667, 0.471405)
    """
    n = int(sizes.sum())
    # Empty cells are never touched.
    distinct, counts = np.unique(sizes[sizes > 0], return_counts=True)
    expected = float((counts * (1 - _missed(distinct.astype(float), n, num_drawn))).sum())
    values, weights = _few(distinct.astype(float), counts)
    alone = _missed(values, n, num_drawn)
    # P(both missed) = P(a cell of both sizes is missed), as a matrix of sizes.
    together = _missed((values[:, None] + values).ravel(), n, num_drawn)
    # Covariances of "cell i is missed" and "cell j is missed"; on the diagonal, where i is j, the
    # variance takes their place.
    joint = together.reshape(len(values), -1) - np.outer(alone, alone)
    # The diagonal of `joint` is wrong for i = j; the second term replaces it by a - a**2.
    variance = weights @ joint @ weights + float(
        (weights * (alone - alone**2 - joint.diagonal())).sum()
    )
    spread = math.sqrt(max(0.0, float(variance)) / max(1, num_windows))
    # Sums of floats differ by processor in their last digits; an answer does not.
    return UniformMoments(expected=expected, spread=float(f"{spread:.12g}"))


def _missed(sizes: NDArray[np.float64], n: int, num_drawn: int) -> NDArray[np.float64]:
    """Return the probability (float64[k]) that no example of a cell is among those drawn."""
    # With more draws than _MAX_FACTORS, each factor stands for several draws, at their midpoint.
    count = min(num_drawn, _MAX_FACTORS)
    # Draw i misses with probability 1 - a / (n - i); of many draws, one is taken for its
    # neighbours. Logarithms, since the product of thousands of factors can underflow.
    drawn = (np.arange(count) + 0.5) * (num_drawn / count) - 0.5
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.minimum(sizes[:, None] / (n - drawn), 1.0)).sum(axis=1)
    # A cell larger than what is left undrawn cannot be missed.
    return np.where(sizes > n - num_drawn, 0.0, np.exp(logs * (num_drawn / count)))


def _few(
    sizes: NDArray[np.float64], counts: Int64s
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The matrix of pairs of sizes grows with the square of their number.
    if len(sizes) <= _MAX_SIZES:
        return sizes, np.asarray(counts, np.float64)
    # Sizes ascend, so that neighbours in a bin are alike.
    bins = np.arange(len(sizes)) * _MAX_SIZES // len(sizes)
    weights = np.bincount(bins, counts).astype(np.float64)
    means: NDArray[np.float64] = np.bincount(bins, counts * sizes) / weights
    return means, weights


# The score of an order: metrics beside what a uniform permutation shows, made one number.

Fault = Literal["above", "below", "both"]
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
    fault: on which side of `expected` an order is worse. reach: how far off the score is 0.
    scale: whether it counts as local mixing, as global mixing, or is only shown.

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
        # The side that is no fault counts as 0.
        off = abs(off) if self.fault == "both" else -off if self.fault == "below" else off
        return 1 - min(1.0, max(0.0, off) / self.reach)


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How close an order is to a uniform permutation, from 0 to 1.

    near: the geometric mean of the metrics of local mixing, so that one low metric makes it low:
        a buffer that separates adjacent examples but draws each batch from a few shards is weak.
    far: the mean of the metrics of global mixing, None where there are none.
    value: near * (1 + far) / 2. Half is lost where the epoch follows storage; whole blocks that are
        shuffled gain nothing by it, as their batches are as bad as sorted ones.
    expected, spread: of the value under a uniform permutation measured the same way. An order that
        scores `expected` cannot be distinguished from a uniform one.
    sampling_error: one standard error, None where the order is measured whole.
    """

    value: float
    near: float
    far: float | None
    expected: float
    spread: float
    sampling_error: float | None

    def __float__(self) -> float:
        return self.value

    def __format__(self, form: str) -> str:
        return format(self.value, form)


def score_of(metrics: Sequence[Metric]) -> Score:
    """Return the score that metrics make.

    The expectation and spread under a uniform permutation take the metrics as normal, the local
    ones as independent and the global ones as one; the sampling error is propagated from each.
    """
    near = [metric for metric in metrics if metric.scale == "near"]
    far = [metric for metric in metrics if metric.scale == "far"]
    value, mean_near, mean_far = _combined(near, far)
    lost, variance, together = 0.0, 0.0, 0.0
    for metric in (*near, *far):
        # E max(0, z) or E |z|: a uniform permutation also loses something, by chance.
        mean, square = _FULL if metric.fault == "both" else _HALF
        weight = 1 / len(near) if metric.scale == "near" else 1 / (2 * len(far))
        deviation = weight * metric.spread / metric.reach
        lost += mean * deviation
        if metric.scale == "near":
            variance += square * deviation**2
        else:
            # Global metrics are strongly dependent, so their deviations add; local ones add in
            # squares.
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
    # Geometric mean: one bad metric cannot be made up for.
    mean_near = math.prod(metric.score for metric in near) ** (1 / len(near))
    if not far:
        return mean_near, mean_near, None
    mean_far = sum(metric.score for metric in far) / len(far)
    return mean_near * (1 + mean_far) / 2, mean_near, mean_far


def _propagated(near: Sequence[Metric], far: Sequence[Metric]) -> float:
    total = 0.0
    for index, metric in enumerate((*near, *far)):
        sides = []
        for error in (-(metric.sampling_error or 0.0), metric.sampling_error or 0.0):
            moved = [*near, *far]
            # One metric at a time is moved by its error both ways; half the difference is its
            # share.
            moved[index] = replace(metric, value=metric.value + error)
            sides.append(_combined(moved[: len(near)], moved[len(near) :])[0])
        total += ((sides[1] - sides[0]) / 2) ** 2
    return math.sqrt(total)


# What the score of an order is worth, in words.
#
# Two verdicts are facts and need no score: an order that nothing shuffles, and one that comes out
# of a buffer as large as its epoch, which is a uniform permutation however it looks. The others
# are thresholds, put where measurements put them:
#
# FAIR, GOOD: a dataset read file after file through a buffer of a quarter scores 0.44 to 0.54,
# through a buffer of half of it 0.76 to 0.81, for 2,000 to 1,281,167 examples in 1 to 1,024 files
# and batches of 32 to 1,024. An example then moves by 16% and 26% of the dataset on the average,
# and by 33% in a uniform permutation. Practice on ImageNet (1,024 files, cycle 16, batches of 256):
# files shuffled alone score 0.07 (weak), with a buffer of 1,000 0.45 (weak), of 10,000 0.59 (fair),
# of 60,000 0.81 (good); a buffer of 10,000 without a file shuffle 0.07 (weak).
# SPREADS: of 298,000 uniform permutations (5 to 60,000 examples in 1 to 64 files, batches of 2 to
# 256) 99.9% score above the expected score less 2.4 to 5.0 spreads, depending on the size.
#
# One score equal to those of uniform permutations is no proof: a buffer of two thirds of 1,500
# examples scores 0.962 in the mean of 60 seeds, where these score 0.984, give or take 0.008. So
# such an order is close to uniform, and "as good as uniform" is said of the second fact alone.
#
# Of few examples a uniform permutation may score as low as an order that is fair. Where it may, an
# order that scores so can be either, and the verdict is "cannot tell".

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
    "weak": "mixed less than by a shuffle buffer of a quarter of the dataset",
    "fair": "mixed as by a shuffle buffer of a quarter to half of the dataset",
    "good": "mixed as by a shuffle buffer of half of the dataset or more",
    "close to uniform": "the score is one that uniform permutations have, which does not prove "
    "that the order is one",
    "as good as uniform": "it is a uniform permutation, whatever its score",
    "cannot tell": "with so few examples, weak shuffles and uniform permutations score alike",
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


def measured(order: Order, sample: OrderSample, window: int) -> tuple[list[Metric], Score, Verdict]:
    """Return the metrics of an order, the score that they make, and what it is worth."""
    metrics = [*near_metrics(sample, window), *far_metrics(sample)]
    score = score_of(metrics)
    return metrics, score, verdict_of(score, order)


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
        f"The picture looks even, but locally this order is {said}. The score sees it; the "
        "picture is too coarse."
    )
