"""What to expect of measures of an order when the order is a uniform permutation.

`UniformMoments` are the expectation and the spread (one standard deviation) of a mean over
positions of a permutation drawn uniformly. They are exact where all positions are measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s

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
        own = Fraction(self.squares, n * (n - 1)) - mean**2
        variance = num_pairs * own
        sharing = self.rows - self.squares
        if n > 2:
            touching = Fraction(sharing, n * (n - 1) * (n - 2)) - mean**2
            variance += 2 * num_touching * touching
        if n > 3:
            apart = self.total**2 - 2 * self.squares - 4 * sharing
            disjoint = Fraction(apart, n * (n - 1) * (n - 2) * (n - 3)) - mean**2
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
    distinct, counts = np.unique(sizes[sizes > 0], return_counts=True)
    expected = float((counts * (1 - _missed(distinct.astype(float), n, num_drawn))).sum())
    values, weights = _few(distinct.astype(float), counts)
    alone = _missed(values, n, num_drawn)
    together = _missed((values[:, None] + values).ravel(), n, num_drawn)
    # Covariances of "cell i is missed" and "cell j is missed"; on the diagonal, where i is j, the
    # variance takes their place.
    joint = together.reshape(len(values), -1) - np.outer(alone, alone)
    variance = weights @ joint @ weights + float(
        (weights * (alone - alone**2 - joint.diagonal())).sum()
    )
    return UniformMoments(
        expected=expected, spread=math.sqrt(max(0.0, float(variance)) / max(1, num_windows))
    )


def _missed(sizes: NDArray[np.float64], n: int, num_drawn: int) -> NDArray[np.float64]:
    """Return the probability (float64[k]) that no example of a cell is among those drawn."""
    count = min(num_drawn, _MAX_FACTORS)
    # Draw i misses with probability 1 - a / (n - i); of many draws, one is taken for its
    # neighbours. Logarithms, since the product of thousands of factors can underflow.
    drawn = (np.arange(count) + 0.5) * (num_drawn / count) - 0.5
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.minimum(sizes[:, None] / (n - drawn), 1.0)).sum(axis=1)
    return np.where(sizes > n - num_drawn, 0.0, np.exp(logs * (num_drawn / count)))


def _few(
    sizes: NDArray[np.float64], counts: Int64s
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The matrix of pairs of sizes grows with the square of their number.
    if len(sizes) <= _MAX_SIZES:
        return sizes, np.asarray(counts, np.float64)
    bins = np.arange(len(sizes)) * _MAX_SIZES // len(sizes)
    weights = np.bincount(bins, counts).astype(np.float64)
    means: NDArray[np.float64] = np.bincount(bins, counts * sizes) / weights
    return means, weights
