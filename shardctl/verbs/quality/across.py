"""How alike are the orders of two epochs, and those of the hosts of a job?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UnpredictableOrderError
from shardctl.order.order import Order
from shardctl.order.sample import (
    COMPLETE_LIMIT,
    Floats,
    OrderSample,
    StorageOrder,
    epoch_length,
    sample_epoch,
    storage_order,
    stretches,
)
from shardctl.spec.host import Host
from shardctl.verbs.quality.metrics import Metric, batch_coverage
from shardctl.verbs.quality.what_if import Question

_MAX_HOSTS = 8
_NUM_WINDOWS = 64
_LONGEST_BATCH = 4096  # examples of a batch of each host that are compared


@dataclass(frozen=True, kw_only=True)
class AcrossEpochs:
    """How an epoch compares with the next.

    unit: "epoch" or "pass". same_order: whether both hand out the examples in one order.
    correlation: of what the same positions hold, 1 where both go through storage alike; expected 0
        and spread under two uniform permutations.
    neighbours_kept: part of the neighbours of one epoch that follow each other in the next as well,
        None where a sample cannot tell; expected_kept: 1 / n.
    """

    unit: str
    same_order: bool
    correlation: float
    spread: float
    expected: float = 0.0
    neighbours_kept: float | None
    expected_kept: float


@dataclass(frozen=True, kw_only=True)
class AcrossHosts:
    """How the hosts of a job compare, and the batches that they form together.

    hosts: which are compared. correlation: of how far into its own files each is at the same step,
        1 where all shuffle by the same permutation; expected 0 and spread if each had its own.
    coverage: of storage, by the batches of all of them at one step.
    shared: part of the examples that more than one of them reading.
    """

    num_hosts: int
    hosts: tuple[int, ...]
    correlation: float
    spread: float
    expected: float = 0.0
    coverage: Metric
    shared: float


def across_epochs(question: Question, order: Order, sample: OrderSample) -> AcrossEpochs | None:
    """Return how an epoch compares with the next: of the pass, or else the first of the next pass.

    None where the next pass depends on timing.
    """
    settings, epoch, unit, second = question.settings, 1, "epoch", order
    try:
        if not order.has_second_epoch:
            following: dict[str, Any] = {"epochs": 2}  # a second one is all there is
            if settings.takes("pass_index"):
                following, epoch, unit = {"pass_index": settings.pass_index + 1}, 0, "pass"
            second = question.order(replace(settings, **following))
        again = sample_epoch(second, epoch=epoch, window=question.window)
    except UnpredictableOrderError:
        return None
    # The last epoch of a pass may be cut short by a batch that is dropped.
    length = min(sample.length, again.length)
    first, other = sample.ranks[:, :length], again.ranks[:, :length]
    return AcrossEpochs(
        unit=unit,
        # Equal numbers are drawn of equal seeds alone.
        same_order=np.array_equal(sample.codes, again.codes),
        correlation=_correlation(
            _centred(first, sample.num_ranks), _centred(other, again.num_ranks)
        ),
        spread=1 / math.sqrt(max(1, first.size - 1)),
        neighbours_kept=_neighbours_kept(sample, again),
        expected_kept=1 / sample.num_positions,
    )


def _centred(ranks: Int64s, num_ranks: int) -> Floats:
    # Less the mean of all ranks, over their standard deviation: the mean of products of such
    # numbers is a correlation coefficient. Of one rank alone, which does not vary, it is 0.
    n = num_ranks
    return np.asarray((ranks - (n - 1) / 2) / math.sqrt(max(1, n * n - 1) / 12), np.float64)


def _correlation(first: Floats, second: Floats) -> float:
    # Of stretches the mean and the spread are those of the whole, so their product may pass 1.
    return max(-1.0, min(1.0, float((first * second).mean())))


def _neighbours_kept(sample: OrderSample, again: OrderSample) -> float | None:
    if not sample.complete:
        return None
    places = first_positions(sample.codes[0], again.codes[0])
    return float(((places[1:] == places[:-1] + 1) & (places[:-1] >= 0)).mean())


def first_positions(codes: Int64s, others: Int64s) -> Int64s:
    """Return where each of `codes` is first among `others`, int64[n], -1 where it is not.

    >>> first_positions(np.array([5, 7, 6]), np.array([6, 5, 5])).tolist()
    [1, -1, 0]
    """
    by_code = np.argsort(others, kind="stable")
    found = np.minimum(np.searchsorted(others, codes, sorter=by_code), len(others) - 1)
    return np.where(others[by_code[found]] == codes, by_code[found], -1)


def across_hosts(question: Question) -> AcrossHosts | None:
    """Return how the hosts compare at the same steps, None for one host or hosts without a batch.

    Of more than 8 hosts, 8 at equal distances are compared, the host of the settings among them.
    """
    host = question.settings.host
    if host is None or host.count == 1:
        return None
    count = min(host.count, _MAX_HOSTS)
    indices = sorted((host.index + i * host.count // count) % host.count for i in range(count))
    settings = question.settings
    orders = [
        question.order(replace(settings, host=Host(index=index, count=host.count)))
        for index in indices
    ]
    window = min(question.window, _LONGEST_BATCH)
    num_examples = min(epoch_length(order) for order in orders)
    if num_examples < max(2, window):
        return None
    num_windows = min(_NUM_WINDOWS, num_examples // window)
    starts = np.arange(num_windows) * (num_examples // num_windows)
    exact = num_examples <= COMPLETE_LIMIT // _MAX_HOSTS
    codes = [order._codes_of_stretches(0, starts, window, exact=exact) for order in orders]
    storages = [storage_order(order) for order in orders]
    # Hosts that share examples all read the same.
    first, *rest = (order.reads for order in orders)
    unlike = [reads for reads in rest if not reads.reads_alike(first)]
    together = StorageOrder([first, *unlike], orders[0].codes)
    pairs = list(combinations(range(count), 2))
    places = [_own_places(storage, drawn) for storage, drawn in zip(storages, codes, strict=True)]
    return AcrossHosts(
        num_hosts=host.count,
        hosts=tuple(indices),
        correlation=sum(_correlation(places[a], places[b]) for a, b in pairs) / len(pairs),
        spread=1 / math.sqrt(num_windows * window * len(pairs)),
        coverage=_joint_coverage(together, np.concatenate(codes, axis=1)),
        shared=_shared(storages, together) if unlike else _shared_by_turns(orders, host.count),
    )


def _own_places(storage: StorageOrder, codes: Int64s) -> Floats:
    return _centred(storage.of(codes)[0], storage.num_ranks)


def _joint_coverage(together: StorageOrder, codes: Int64s) -> Metric:
    sample = stretches(together, np.zeros(len(codes), np.int64), codes, together.num_ranks)
    return batch_coverage(sample, min(codes.shape[1], together.num_ranks))


def _shared(storages: Sequence[StorageOrder], together: StorageOrder) -> float:
    read = sum(storage.num_ranks for storage in storages)
    return (read - together.num_ranks) / together.num_ranks


def _shared_by_turns(orders: Sequence[Order], num_hosts: int) -> float:
    """Return what hosts that all read the same hand out again, where all are compared.

    Each passes by what is another's turn; a loader makes them even by some examples more.
    """
    total = orders[0].reads.num_examples
    handed_out = sum(order.epoch_size for order in orders)
    return max(0.0, (handed_out - total) / total) if len(orders) == num_hosts else 0.0
