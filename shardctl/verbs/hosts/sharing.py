"""What hosts share of a pipeline, and what each of them gets, for `hosts` and for `eval`.

Another loader than TFDS's reader shares in a way of its own, and each host's order is looked
through; `readers.py` does the same for the readers of a tf.data pipeline.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardctl.base.arrays import EqualByItems, Int64s
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.text import counted, in_short
from shardctl.order.file_formats import as_read_by, refuse_open_splits
from shardctl.order.loader_order import LoaderOrder, loader_version
from shardctl.order.order import CHUNK_SIZE, Order
from shardctl.order.plan_order import as_warnings
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import Resolved

_EVEN = 1.01  # without a batch size hosts count as even when the busiest has 1% over the mean

OUTSTANDING = 1.0005  # times the mean: from what rounds to 0.1% over it a straggler is named


@dataclass(frozen=True, kw_only=True)
class Load:
    """How a quantity is spread over the hosts: its extremes, and the straggler.

    `straggler` is the first host that has the most; `imbalance` is max / mean over all hosts, the
    idle ones included: 1.0 where all have the same, None where there is nothing.
    """

    min: int
    max: int
    total: int
    straggler: int
    imbalance: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Strategy(EqualByItems):
    """One way of splitting a spec among hosts, and what it comes to.

    read_amplification: examples that all hosts take from disk over examples in the spec; None for
        a spec without examples.
    idle_hosts: number of hosts that get no examples.
    shared_files: number of files that more than one host opens.
    num_batches: of the whole pass, None without a batch size.
    same_permutation: whether all hosts open their files in the same permutation of places, None
        where files are not shuffled or no seed fixes how.
    refusal: why TFDS does not read this way, None where it does.
    columns, batches: the figures of each host, None in a sweep.
    num_repeated: examples that a loader hands out again as padding; num_left_out: to no host.
    """

    name: str
    num_examples: Load
    num_bytes: Load | None
    num_files: Load
    num_batches: Load | None
    read_amplification: float | None
    shared_files: int
    idle_hosts: int
    columns: HostReads | None
    batches: Int64s | None
    refusal: str | None = None
    same_permutation: bool | None = None
    num_repeated: int = 0
    num_left_out: int = 0

    @property
    def imbalance(self) -> float | None:
        """Examples of the busiest host over those of the mean one."""
        return self.num_examples.imbalance

    @property
    def is_uneven(self) -> bool:
        """Whether hosts make different numbers of batches; by examples where no batch is given."""
        if self.num_batches is not None:
            return self.num_batches.min != self.num_batches.max
        return (self.imbalance or 1.0) > _EVEN

    def __repr__(self) -> str:
        return in_short(
            self,
            self.name,
            f"{self.num_examples.min:,} to {self.num_examples.max:,} examples a host",
            f"{counted(self.idle_hosts, 'host')} idle" if self.idle_hosts else "",
            "refused by TFDS" if self.refusal else "",
        )


def strategy_of(
    name: str, columns: HostReads, batches: Int64s | None, num_examples: int, **figures: Any
) -> Strategy:
    """Return what the hosts' shares of so many examples come to; `figures` are fields besides."""
    return Strategy(
        name=name,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if batches is None else _load(batches),
        read_amplification=_sum(columns.num_read) / num_examples if num_examples else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        columns=columns,
        batches=batches,
        **figures,
    )


def _load(values: Int64s) -> Load:
    total = _sum(values)
    most = int(values.max())
    return Load(
        min=int(values.min()),
        max=most,
        total=total,
        straggler=int(values.argmax()),
        imbalance=most * len(values) / total if total else None,
    )


def _sum(values: Int64s) -> int:
    """Return a sum as Python's int: N hosts that read all are past an int64 soon.

    >>> import numpy as np
    >>> _sum(np.array([2**62, 2**62, 2**62, -1])) == 3 * 2**62 - 1
    True
    """
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


_MOST_ROWS = 1 << 25  # files of all hosts of a loader together
_MOST_EXAMPLES = 1 << 31
_PER_SECOND = 3_000_000  # examples of a loader whose files are found


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What hosts hand out in batches of one size: int64[num_hosts] each.

    sizes: the different sizes of a batch. num_seen: different examples that any host hands out.
    partial_is_last: whether only the last batch of a host may be smaller than others.
    """

    num_examples: Int64s
    num_steps: Int64s
    sizes: tuple[int, ...]
    num_seen: int
    partial_is_last: bool = True


class Sharing(ABC):
    """What hosts share of a pipeline, and each way in which they can.

    settings: how it is read, in the short form where there is one. resolved: what is read.
    reads: the same as file instructions, of all hosts. ways: the names of the ways to share, of
        which the settings choose `judged`.
    num_readers: how many readers of a mixture are shared one by one.
    own_batch: examples of a host's batch where stages form it; `drops` says whether they drop a
        partial one. is_simple: whether a host hands out its share once, one example after the
        other, so that another batch or number of hosts is a matter of arithmetic.
    """

    settings: ReadSettings
    resolved: Resolved
    reads: Reads
    ways: tuple[str, ...]
    judged: str
    num_readers = 1
    own_batch: int | None = None
    drops = False
    is_simple = False

    @abstractmethod
    def strategy(self, way: str, num_hosts: int) -> Strategy:
        """Return what each host gets of an epoch, and its batches as the settings form them."""

    @abstractmethod
    def run(self, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch, sharing as the settings choose.

        drop: whether a partial batch is dropped.
        """

    def refusal(self, num_hosts: int) -> str | None:
        """Return why TFDS does not read so on every host, None where it does."""
        return None

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return as warnings what the counts depend on though nobody stated it."""
        return ()


def run_of(orders: Sequence[Order], which: Int64s, num_seen: int) -> Run:
    """Return what hosts hand out, each of which has one of the orders, int64[num_hosts]."""
    widths = [_widths(order) for order in orders]
    most = max((int(one.max(initial=0)) for one in widths), default=0)
    return Run(
        num_examples=np.array([order.num_examples for order in orders], np.int64)[which],
        num_steps=np.array([order.num_steps for order in orders], np.int64)[which],
        sizes=tuple(np.unique(np.concatenate(widths)).tolist()),
        num_seen=num_seen,
        partial_is_last=all(bool((one[:-1] == most).all()) for one in widths),
    )


def _widths(order: Order) -> Int64s:
    """Return how many examples each batch of an order has, int64[steps]."""
    widths = np.zeros(order.num_steps or 0, np.int64)
    for start in range(0, order.num_examples, CHUNK_SIZE):
        stop = min(start + CHUNK_SIZE, order.num_examples)
        steps, _ = order.steps_of(np.arange(start, stop))
        found = np.bincount(steps - steps[0])
        widths[steps[0] : steps[0] + len(found)] += found
    return widths


def call_of_hosts(settings: ReadSettings) -> str:
    """Return what shares the examples of another loader among hosts.

    >>> call_of_hosts(ReadSettings(loader="torch"))
    'DistributedSampler'
    """
    return settings.reader.shares_by or settings.reader.title


class OfLoader(Sharing):
    """What the processes of another loader share, in its own way.

    Raises:
        UsageError: a version of the library that nobody knows, or it shares nothing.
    """

    def __init__(self, resolved: Resolved, settings: ReadSettings) -> None:
        if "host" not in settings.reader.takes:
            raise refused("{loader=} shares nothing among hosts", loader=settings.loader)
        version = loader_version(settings)
        self.settings = replace(settings, host=None, loader_version=version.version)
        kept = as_read_by(resolved, settings)
        said = (*version.warnings, *as_warnings(version.assumptions))
        self.resolved = replace(kept, warnings=(*kept.warnings, *said))
        self.reads = reads_of(resolved.dataset, resolved.ranges)
        self.judged = call_of_hosts(settings)
        self.ways = (self.judged,)

    def _orders(self, num_hosts: int, **changed: object) -> Iterator[LoaderOrder]:
        """Yield the order of each host under changed settings.

        Raises:
            UsageError: too many hosts for so many files; the loader refuses the settings.
            UnpredictableOrderError: the loader, or the order of the splits, is open.
        """
        refuse_open_splits(self.resolved)
        reads = self.reads
        for index in range(num_hosts):
            host = Host(index=index, count=num_hosts) if num_hosts > 1 else None
            settings = replace(self.settings, host=host, **changed)  # type: ignore[arg-type]
            order = LoaderOrder(self.resolved.dataset, self.resolved.ranges, settings)
            if num_hosts * len(reads) > _MOST_ROWS or reads.num_examples > _MOST_EXAMPLES:
                raise refused(
                    "{hosts=} of {:,} examples in {:,} files each are too many to look at one "
                    "by one; give fewer {hosts}, or a part of the spec",
                    reads.num_examples,
                    len(reads),
                    hosts=num_hosts,
                )
            yield order

    def _counts(self, orders: Sequence[LoaderOrder]) -> tuple[list[Int64s], int]:
        """Return how many examples of each row the hosts hand out, and how many different ones.

        int64[rows] each; one that is handed out again counts again.
        """
        progress = Progress(
            None,
            "examples of the hosts",
            len(orders) + sum(order.num_examples for order in orders),
            per_second=_PER_SECOND,
            instead="give fewer --hosts",
        )
        stops = np.cumsum(self.reads.take)
        seen = np.zeros(self.reads.num_examples, np.bool_)
        found = []
        for order in orders:
            counts = np.zeros(len(stops), np.int64)
            for start in range(0, order.num_examples, CHUNK_SIZE):
                stop = min(start + CHUNK_SIZE, order.num_examples)
                indices = order.indices_at(np.arange(start, stop))
                seen[indices] = True
                rows = np.searchsorted(stops, indices, side="right")
                counts += np.bincount(rows, minlength=len(stops))
                progress.advance(stop - start)
            found.append(counts)
        return found, int(seen.sum())

    def strategy(self, way: str, num_hosts: int) -> Strategy:
        """Return what each host gets of an epoch, and its batches as the settings form them."""
        reads, settings = self.reads, self.settings
        # Where hosts share batches, a partial one that is dropped is nobody's.
        drops = settings.drop_remainder and settings.reader.deals_batches
        orders = list(self._orders(num_hosts, epochs=1, drop_remainder=drops))
        counts, num_seen = self._counts(orders)
        host, row = np.nonzero(counts)
        take = np.concatenate([one[one > 0] for one in counts])
        rows = replace(reads.select(row), skip=np.zeros_like(take), take=take)
        columns = SharedReads(rows).by_rows(host, num_hosts)
        taken = [(order.sequence.num_read, order.num_examples) for order in orders]
        num_read = np.array([most if read is None else read for read, most in taken], np.int64)
        batches = [order.num_steps for order in self._orders(num_hosts)] if settings.batch else None
        return strategy_of(
            way,
            replace(columns, num_read=num_read),
            None if batches is None else np.array(batches, np.int64),
            reads.num_examples,
            num_repeated=int(take.sum()) - num_seen,
            num_left_out=reads.num_examples - num_seen,
            refusal=None if reads.num_examples else "there are no examples",
        )

    def run(self, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch in batches of one size."""
        orders = list(self._orders(num_hosts, epochs=1, batch=batch, drop_remainder=drop))
        return run_of(orders, np.arange(num_hosts), self._counts(orders)[1])

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return as warnings what the counts depend on though nobody stated it."""
        if not self.settings.reader.shares_are_assumed:
            return ()
        return as_warnings(next(self._orders(num_hosts, batch=batch)).assumptions)
