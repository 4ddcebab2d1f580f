"""One way to read a dataset: how an epoch of it is mixed and ends, whether it can be continued."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import in_short
from shardctl.errors import ShardctlError, UsageError
from shardctl.planning.loader_version import with_version
from shardctl.planning.order import PlannedOrder, as_warnings, order_of
from shardctl.planning.quality.loaders.ending import Ending, ending_of
from shardctl.planning.quality.loaders.ways import Access, Continued, Way
from shardctl.planning.quality.metrics import (
    far_metrics,
    near_metrics,
    occupancy_moments,
    shards_in_batch,
)
from shardctl.planning.quality.sample import COMPLETE_LIMIT, epoch_length, sample_epoch
from shardctl.planning.quality.score import Verdict, score_of, verdict_of
from shardctl.planning.quality.storage_order import storage_order

_MEASURED = (
    1 << 18
)  # examples up to which a row is measured whole, and about what is of longer ones
_TAIL = 0.02


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """How one process of a loader mixes an epoch.

    num_examples: of its epoch; num_measured of them are, none where the permutation is known to be
        uniform and too long to make: then all is as expected of one.
    shards: from how many shards a batch comes, on average; at_end: of the last 2%, a batch at
        least; shards_error: one standard error of `shards`, None where all is measured.
    uniform_shards: expected of a uniform permutation of what the process reads.
    """

    num_examples: int
    num_measured: int
    shards: float
    shards_error: float | None
    at_end: float
    uniform_shards: float
    score: float
    score_error: float | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class WayToRead:
    """A way to read: how it mixes, how it ends, and whether it can be continued.

    reader: who reads, in the words of the library. settings: in force, of the host that is
        measured; of another loader with its version.
    num_files: files that are read at once; of a loader that reads by index those it jumps among.
    continued: what the state of the library itself is worth; by: what does it, if anything does.
    num_lost: examples that such a state loses at most, 0 where it loses none.
    refused: why this dataset is not read so; what is not known then is None.
    """

    reader: str
    settings: ReadSettings
    access: Access
    num_files: int | None
    mixing: Mixing | None
    ending: Ending | None
    continued: Continued
    by: str | None
    num_lost: int
    refused: str | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        scored = "refused" if self.mixing is None else f"score {self.mixing.score:.3f}"
        return in_short(self, self.reader, scored)


def way_to_read(resolved: Resolved, way: Way, num_hosts: int) -> WayToRead:
    """Return what comes of a way to read a spec, or why it is refused."""
    refused: str | None = None
    planned: PlannedOrder | None = None
    mixing = ending = num_files = None
    try:
        if num_hosts > 1 and not way.shares:
            raise UsageError(
                "it shares nothing among hosts: each of them reads everything; DistributedSampler "
                "shares"
            )
        # Its row says the version, so nothing is assumed of it.
        planned = order_of(resolved, with_version(way.settings))
        ending = ending_of(
            lambda other: order_of(resolved, other).order,
            planned.order.settings,
            resolved.num_examples,
        )
        mixing = _mixing(planned.order, way.settings.batch or 1)
        num_files = _num_files(planned.order)
    except ShardctlError as error:
        refused = error.args[0] if error.args else str(error)
        mixing = ending = num_files = None
    held = 0 if way.held is None or way.continued != "loses examples" else way.held
    return WayToRead(
        reader=way.reader,
        settings=way.settings if planned is None else planned.order.settings,
        access=way.access,
        num_files=num_files,
        mixing=mixing,
        ending=ending,
        continued=way.continued,
        by=way.by,
        num_lost=held if mixing is None else min(held, mixing.num_examples),
        refused=refused,
        warnings=() if planned is None else (*planned.warnings, *as_warnings(planned.assumptions)),
    )


def _mixing(order: Order, batch: int) -> Mixing:
    num_examples = epoch_length(order)
    if num_examples < 2:
        raise UsageError(
            f"how well it mixes takes 2 examples at least, and a process has {num_examples} here"
        )
    window = max(2, min(batch, num_examples))
    if num_examples > COMPLETE_LIMIT and order.is_uniform and order.is_made_whole:
        return _known(order, num_examples, window)
    sample = sample_epoch(order, window=window, limit=_MEASURED, num_measured=_MEASURED)
    score = score_of([*near_metrics(sample, window), *far_metrics(sample)])
    shards = shards_in_batch(sample, window)
    share = max(_TAIL, window / num_examples)
    end = sample.part(1 - share, 1.0, window)
    return Mixing(
        num_examples=num_examples,
        num_measured=sample.num_measured if not sample.complete else num_examples,
        shards=shards.value,
        shards_error=shards.sampling_error,
        at_end=shards_in_batch(end, window).value,
        uniform_shards=shards.expected,
        score=score.value,
        score_error=score.sampling_error,
        verdict=verdict_of(score, order),
    )


def _known(order: Order, num_examples: int, window: int) -> Mixing:
    """Return what is expected of a uniform permutation, which need not be made for it."""
    sizes = storage_order(order).shard_sizes
    shards = occupancy_moments(sizes, window, 1).expected
    return Mixing(
        num_examples=num_examples,
        num_measured=0,
        shards=shards,
        shards_error=None,
        at_end=shards,
        uniform_shards=shards,
        score=1.0,
        score_error=None,
        verdict="as good as uniform",
    )


def _num_files(order: Order) -> int:
    """Return how many files a process reads at once, or jumps among where it reads by index."""
    num_files, window = len(storage_order(order).shard_sizes), order.settings.buffer
    if order.num_in_turn is not None:
        return min(num_files, order.num_in_turn)
    # A window: neighbours in storage.
    return num_files if window is None else _most_in_window(order, window)


def _most_in_window(order: Order, size: int) -> int:
    """Return from how many files at most come `size` examples that lie together, in such pieces."""
    stops = np.cumsum(order.reads.take)
    begins = np.arange(0, int(stops[-1]), max(1, size))[:_MEASURED]
    first = np.searchsorted(stops, begins, side="right")
    last = np.searchsorted(stops, np.minimum(begins + size, stops[-1]) - 1, side="right")
    return int((last - first).max()) + 1
