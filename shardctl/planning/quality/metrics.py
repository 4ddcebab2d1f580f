"""Measures of an order, each beside what a uniform permutation shows."""

from __future__ import annotations

import math

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.planning.quality.sample import Floats, OrderSample
from shardctl.planning.quality.score import Fault, Metric, Scale
from shardctl.planning.quality.uniform_orders import (
    PairKernel,
    UniformMoments,
    displacement_moments,
    occupancy_moments,
    rank_correlation_moments,
)


def near_metrics(sample: OrderSample, window: int, num_classes: int | None = None) -> list[Metric]:
    """Return the metrics of mixing near by: neighbours, and windows of a batch.

    `num_classes` is that of labels sorted in storage, 0 for one a shard, None where they are not. A
    metric that every order has alike is left out: shards of one example, or a single shard, beside
    which others may be too small to count in a float.
    """
    found = []
    if len(sample.shard_sizes) > 1 and int(sample.shard_sizes.max()) > 1:
        neighbours = same_shard_neighbours(sample)
        found += [neighbours] if neighbours.reach > 0 else []
    found.append(neighbour_distance(sample))
    if window <= sample.length:
        found.append(batch_coverage(sample, window))
        if num_classes is not None:
            classes, sizes = _sorted_classes(sample, num_classes)
            if len(sizes) > 1 and int(sizes.max()) > 1:
                found.append(class_purity(sample, window, classes, sizes))
    return found


def far_metrics(sample: OrderSample) -> list[Metric]:
    """Return the metrics of mixing far apart: how the epoch follows storage."""
    return [displacement(sample), rank_correlation(sample)]


def same_shard_neighbours(sample: OrderSample) -> Metric:
    """Return the part of neighbours in the order that come from one shard.

    n less the number of runs, over n - 1 (Wald and Wolfowitz, "On a test whether two samples are
    from the same population", 1940; Mood 1940 for several kinds). Uniform: the sum over shards of
    n_s (n_s - 1) / (n (n - 1)). Fewer is not a fault.
    """
    same = sample.shards[:, 1:] == sample.shards[:, :-1]
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
    return _coverage("batch_coverage", sample, window, "near")


def buffer_coverage(sample: OrderSample, window: int) -> Metric:
    """Return the part of the dataset that as many examples as a buffer holds are drawn from.

    As for a batch; the window is that of the buffer. It does not count in the score, so that orders
    with and without a buffer compare.
    """
    return _coverage("buffer_coverage", sample, window, "shown")


def shards_in_batch(sample: OrderSample, window: int) -> Metric:
    """Return from how many shards the examples of a batch come.

    Uniform: the sum over shards of 1 - C(n - n_s, b) / C(n, b). More is not a fault.
    """
    counts = _touched(sample.shards, window)
    uniform = occupancy_moments(sample.shard_sizes, window, counts.size)
    return _metric(
        "shards_in_batch", sample, counts.mean(axis=1), uniform, "below", uniform.expected, "shown"
    )


def class_purity(sample: OrderSample, window: int, classes: Int64s, class_sizes: Int64s) -> Metric:
    """Return the chance that two examples of a batch are of one class.

    Simpson's index of concentration ("Measurement of diversity", 1949), without replacement; its
    inverse is the number of classes that are as good as present (Hill, "Diversity and evenness",
    1973), by which it is scored. Uniform: the sum over classes of n_c (n_c - 1) / (n (n - 1)). Less
    is not a fault.
    """
    rows = _windows(classes, window)
    ordered = np.sort(rows, axis=-1)
    # Of each run of one class, an example has as many partners before it as its place in the run.
    begins = np.ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    place = np.arange(window)
    run_start = np.maximum.accumulate(np.where(begins, place, 0), axis=-1)
    num_pairs = window * (window - 1) // 2
    purity = (place - run_start).sum(axis=-1) / num_pairs
    num_windows = purity.size
    uniform = PairKernel.of_groups(class_sizes).moments(
        num_windows * num_pairs, num_windows * num_pairs * (window - 2)
    )
    return _metric("class_purity", sample, purity.mean(axis=1), uniform, "times", uniform.expected)


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
    values = 1 - 6 * (sample.offsets**2).mean(axis=1) * (n * n / (n * n - 1))
    uniform = rank_correlation_moments(n, sample.num_measured)
    return _metric("rank_correlation", sample, values, uniform, "both", 1.0, "far")


def error_of(values: Floats, sample: OrderSample) -> float | None:
    """Return the standard error of a mean over stretches (float64[k]), None for a whole order.

    One stretch a stratum: from the differences of successive ones (Wolter, "Introduction to
    Variance Estimation", 2007, section 8.2), less what is measured already.
    """
    if sample.complete:
        return None
    if len(values) < 2:
        return math.inf
    variance = float((np.diff(values) ** 2).mean()) / 2 / len(values)
    return math.sqrt(variance * (1 - sample.measured_part))


def _metric(
    name: str,
    sample: OrderSample,
    values: Floats,
    uniform: UniformMoments,
    fault: Fault,
    reach: float,
    scale: Scale = "near",
) -> Metric:
    return Metric(
        name=name,
        value=float(values.mean()),
        expected=uniform.expected,
        spread=uniform.spread,
        fault=fault,
        reach=reach,
        scale=scale,
        sampling_error=error_of(values, sample),
    )


def _coverage(name: str, sample: OrderSample, window: int, scale: Scale) -> Metric:
    cells, sizes = _equal_parts(sample, window)
    touched = _touched(cells, window)
    uniform = occupancy_moments(sizes, window, touched.size)
    part = UniformMoments(expected=uniform.expected / window, spread=uniform.spread / window)
    return _metric(name, sample, touched.mean(axis=1) / window, part, "below", part.expected, scale)


def _sorted_classes(sample: OrderSample, num_classes: int) -> tuple[Int64s, Int64s]:
    if num_classes == 0:
        return sample.shards, sample.shard_sizes
    return _equal_parts(sample, num_classes)


def _equal_parts(sample: OrderSample, count: int) -> tuple[Int64s, Int64s]:
    """Return which of equal parts each position holds (int64[k, length]), and their sizes."""
    num_ranks = sample.num_ranks
    if num_ranks * count < 1 << 63:  # else rank * count would overflow an int64
        # Part c begins at the first rank for which rank * count // num_ranks is c.
        edges = -(-np.arange(count + 1) * num_ranks // count)
        return sample.ranks * count // num_ranks, np.diff(edges)
    size = num_ranks // count  # the last part takes the rest, fewer than `count`
    sizes = np.full(count, size)
    sizes[-1] += num_ranks - size * count
    return np.minimum(sample.ranks // size, count - 1), sizes


def _neighbours(sample: OrderSample) -> tuple[int, int]:
    """Return (pairs of neighbours measured, pairs of those that share an example)."""
    stretches = len(sample.ranks)
    return stretches * (sample.length - 1), stretches * max(0, sample.length - 2)


def _windows(values: Int64s, window: int) -> Int64s:
    """Return whole windows, [k, windows of a stretch, window]."""
    count = values.shape[1] // window
    return values[:, : count * window].reshape(len(values), count, window)


def _touched(cells: Int64s, window: int) -> Int64s:
    """Return how many cells each window touches, int64[k, windows of a stretch]."""
    # Sorted, so that a new cell begins wherever neighbours differ; a set a window would be slow.
    ordered = np.sort(_windows(cells, window), axis=-1)
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1)
    return np.asarray(changes + 1, np.int64)
